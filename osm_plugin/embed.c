/* Start the Python interpreter inside OpenSM.  The Python code manages the worker processes.  Threads of OpenSM's SA
 * also call functions of the plugin, but these functions never call Python. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dlfcn.h>
#include <stdio.h>

#include "shim.h"

/* Make the symbols of libpython global.  OpenSM loads plugins without RTLD_GLOBAL, but Python's extension modules look
 * for these symbols among the global symbols. */
static int show_python(char *why)
{
    Dl_info python;

    if (!dladdr((void *)(uintptr_t)&Py_IsInitialized, &python) || !python.dli_fname) {
        snprintf(why, IBNUE_WHY, "cannot find libpython");
        return -1;
    }
    if (!dlopen(python.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD)) {
        snprintf(why, IBNUE_WHY, "cannot make the symbols of %s visible: %s", python.dli_fname, dlerror());
        return -1;
    }
    return 0;
}

/* Start Python with the settings of the interpreter for which the plugin was built.  Environment variables PYTHON*
 * are ignored, and no signal handlers are installed.  Names of files are UTF-8 in any locale. */
int ibnue_python_start(char *why)
{
    PyPreConfig before;
    PyConfig config;
    PyStatus status;

    if (show_python(why))
        return -1;
    if (Py_IsInitialized())
        return 0;
    PyPreConfig_InitIsolatedConfig(&before);
    before.utf8_mode = 1;
    status = Py_PreInitialize(&before);
    PyConfig_InitIsolatedConfig(&config);
    config.install_signal_handlers = 0;
    config.pathconfig_warnings = 0;
    if (!PyStatus_Exception(status))
        status = PyConfig_SetBytesString(&config, &config.program_name, IBNUE_PYTHON);
    if (!PyStatus_Exception(status))
        status = PyConfig_SetBytesString(&config, &config.executable, IBNUE_PYTHON);
    if (!PyStatus_Exception(status))
        status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status)) {
        snprintf(why, IBNUE_WHY, "Python (%s) does not start: %s", IBNUE_PYTHON,
                 status.err_msg ? status.err_msg : "no reason given");
        return -1;
    }
    /* OpenSM's thread releases the GIL (Python's global lock), because every later call into Python acquires it. */
    PyEval_SaveThread();
    return 0;
}
