/* SPDX-License-Identifier: MIT */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "executor/zygote/python_worker.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/session_wire.h"
#include "executor/zygote/fork_orphan.h"
#include "runner_embed.h"

#define RUNNER_FILE "<vivarium>" /* its frames are left out of tracebacks */

static PyObject *runner;  /* the module _vivarium_runner */
static bool in_a_session; /* of this process: set after the fork */
static bool has_hooks;    /* code of the user is called for what the runner does */

static void drop_reference_cleanup(PyObject **object) { Py_XDECREF(*object); }

/* C's system(3) swallows the refusal of the kernel and returns 32512; Python code gets an
 * exception instead. The refusal does not depend on it. */
static int audit(const char *event, PyObject *arguments, void *context) {
    (void)arguments;
    (void)context;
    if (in_a_session && strcmp(event, "sys.addaudithook") == 0)
        has_hooks = true;
    if (!in_a_session || strcmp(event, "os.system") != 0)
        return 0;
    errno = EPERM;
    PyErr_SetFromErrno(PyExc_OSError);
    return -1;
}

/* The pending exception as text for a log of ours: no code of a user runs where it is
 * used. */
static int fail_with_exception(struct viv_error *err, const char *what) {
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    CLEANUP(drop_reference) PyObject *text = value ? PyObject_Str(value) : NULL;
    const char *message = text ? PyUnicode_AsUTF8(text) : NULL;
    viv_fail(err, VIV_SYSTEM, "%s: %s", what, message ? message : "an exception");
    PyErr_Clear();
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return -1;
}

/* An isolated interpreter does not look at the environment's LANG: UTF-8 is asked for
 * here. */
static PyStatus preinitialize(void) {
    PyPreConfig config;

    PyPreConfig_InitIsolatedConfig(&config);
    config.utf8_mode = 1;
    return Py_PreInitialize(&config);
}

static PyStatus initialize(void) {
    PyConfig config;

    PyConfig_InitIsolatedConfig(&config);
    config.site_import = 1;
    config.write_bytecode = 0;
    /* SIGINT is the runner's; SIGPIPE and SIGXFSZ must be errors, not the end. */
    config.install_signal_handlers = 0;
    PyStatus status =
        PyConfig_SetBytesString(&config, &config.home, VIVARIUM_PYTHON_HOME);
    if (!PyStatus_Exception(status))
        status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    return status;
}

static int start_interpreter(struct viv_error *err) {
    PyStatus status = preinitialize();

    if (!PyStatus_Exception(status))
        status = initialize();
    if (PyStatus_Exception(status))
        return viv_fail(err, VIV_SYSTEM, "start Python: %s", status.err_msg);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    return 0;
}

/* Loads the embedded files as modules, each after those that it imports. */
static int load_runner(struct viv_error *err) {
    for (size_t i = 0; i < sizeof runner_files / sizeof *runner_files; i++) {
        CLEANUP(free_ptr)
        char *source =
            viv_xstrndup((const char *)runner_files[i].source, runner_files[i].length);
        CLEANUP(drop_reference)
        PyObject *code = Py_CompileString(source, RUNNER_FILE, Py_file_input);
        if (!code)
            return fail_with_exception(err, runner_files[i].module);
        PyObject *module = PyImport_ExecCodeModule(runner_files[i].module, code);
        if (!module)
            return fail_with_exception(err, runner_files[i].module);
        Py_XSETREF(runner, module);
    }
    return 0;
}

static int prepare(const char *preload, struct viv_error *err) {
    CLEANUP(drop_reference) PyObject *names = PyList_New(0);
    CLEANUP(free_ptr) char *text = viv_xstrdup(preload);
    char *rest = text;

    for (char *name; names && (name = strsep(&rest, ", "));) {
        if (*name == '\0')
            continue;
        CLEANUP(drop_reference) PyObject *item = PyUnicode_FromString(name);
        if (!item || PyList_Append(names, item))
            return fail_with_exception(err, "preload");
    }
    CLEANUP(drop_reference)
    PyObject *done = PyObject_CallMethod(runner, "prepare", "O", names);
    return done ? 0 : fail_with_exception(err, "preload");
}

int python_start(const char *preload, struct viv_error *err) {
    if (PySys_AddAuditHook(audit, NULL))
        return viv_fail(err, VIV_SYSTEM, "the audit hook is refused");
    if (start_interpreter(err) || load_runner(err))
        return -1;
    return prepare(preload, err);
}

pid_t python_fork_orphan(void) {
    PyOS_BeforeFork();
    pid_t result = fork_orphan();
    int error = errno;
    if (result == 0) {
        PyOS_AfterFork_Child();
        in_a_session = true;
    } else {
        PyOS_AfterFork_Parent();
    }
    errno = error;
    return result;
}

int python_begin(bool home_is_here, struct viv_error *err) {
    CLEANUP(drop_reference)
    PyObject *done =
        PyObject_CallMethod(runner, "begin", "O", home_is_here ? Py_True : Py_False);

    return done ? 0 : fail_with_exception(err, "begin");
}

int python_run(const struct worker_call *call, struct slice code,
               struct slice standard_input, struct buffer *claims,
               struct viv_error *err) {
    CLEANUP(drop_reference)
    PyObject *result = PyObject_CallMethod(
        runner, "run", "y#y#IIO", code.data, (Py_ssize_t)code.size, standard_input.data,
        (Py_ssize_t)standard_input.size, call->number, call->max_result,
        call->late_interrupt ? Py_True : Py_False);
    char *bytes;
    Py_ssize_t size;

    if (!result)
        return fail_with_exception(err, "run");
    if (PyBytes_AsStringAndSize(result, &bytes, &size))
        return fail_with_exception(err, "run");
    return buffer_append(claims, bytes, (size_t)size, claims->size + SESSION_CLAIMS_MAX,
                         err);
}

void python_touch(void) {
    CLEANUP(drop_reference)
    PyObject *done = has_hooks ? NULL : PyObject_CallMethod(runner, "touch", NULL);

    if (!done)
        PyErr_Clear();
}

void *python_release(void) { return PyEval_SaveThread(); }

void python_resume(void *state) { PyEval_RestoreThread(state); }
