/* SPDX-License-Identifier: MIT */
/*
 * The floor of the benchmark: the least that a FastCGI application behind the same web
 * server can do. It reads each request's body and answers with a fixed text about as long
 * as the answer to 1+1. Its listening socket is descriptor 0, as the FastCGI
 * specification has it (2.2).
 */
#include <fcgiapp.h>
#include <stdlib.h>

#define ANSWER                                                                           \
    "{\"success\":true,\"result\":{\"success\":true,\"std_out\":\"\",\"std_err\":\"\","  \
    "\"final_expression\":2,\"final_expression_type\":\"int\",\"output_files\":[],"      \
    "\"code_runtime\":0},\"session\":{\"id\":\"bench-live\",\"created\":false,"          \
    "\"lost\":\"none\",\"execution_count\":100}}"

static void answer(FCGX_Request *request) {
    char body[4096];

    while (FCGX_GetStr(body, sizeof body, request->in) == (int)sizeof body)
        continue;
    FCGX_FPrintF(request->out,
                 "Status: 200\r\nContent-Type: application/json\r\n"
                 "Content-Length: %d\r\nCache-Control: no-store\r\n\r\n%s",
                 (int)sizeof ANSWER - 1, ANSWER);
}

int main(void) {
    FCGX_Request request;

    if (FCGX_Init() || FCGX_InitRequest(&request, 0, 0))
        return EXIT_FAILURE;
    while (FCGX_Accept_r(&request) == 0) {
        answer(&request);
        FCGX_Finish_r(&request);
    }
    return EXIT_FAILURE;
}
