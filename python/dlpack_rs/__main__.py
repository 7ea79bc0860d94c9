"""Command line: python -m dlpack_rs inspect MODULE:EXPRESSION | conform LIBRARY | include | ...

    inspect numpy:arange(6.0)   everything about the DLPack export of an object, and who takes it;
                                the expression is evaluated in the module's names
    conform torch               how a library keeps DLPack's rules; conform --help says more
    include                     the folder for programs that include <dlpack/dlpack_rs.h>
    cflags, libs                what their compiler and linker are told
    cmakedir                    the folder for CMake's dlpack_rs_DIR
    library                     the path of the shared library
"""

import importlib
import sys


def evaluate(text):
    """The value of `module:expression`."""
    name, colon, expression = text.partition(":")
    if not colon or not name or not expression:
        sys.exit(f"{text!r} is not MODULE:EXPRESSION, such as numpy:arange(6.0)")
    sys.path.insert(0, "")
    module = importlib.import_module(name)
    return eval(expression, {**vars(module), name.partition(".")[0]: module})


def main(arguments=None):
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) == 2 and arguments[0] == "inspect":
        import dlpack_rs

        try:
            print(dlpack_rs.inspect(evaluate(arguments[1])))
        except (TypeError, ImportError) as error:
            sys.exit(f"{type(error).__name__}: {error}")
    elif arguments[:1] == ["conform"]:
        from dlpack_rs.conform import main as conform

        sys.exit(conform(arguments[1:]))
    elif len(arguments) == 1 and arguments[0] in ("include", "cflags", "libs", "cmakedir"):
        from dlpack_rs import _compile

        try:
            print(getattr(_compile, arguments[0])())
        except ImportError as error:
            sys.exit(str(error))
    elif arguments == ["library"]:
        from dlpack_rs.abi import library_path

        print(library_path())
    else:
        sys.exit(__doc__.strip())


if __name__ == "__main__":
    main()
