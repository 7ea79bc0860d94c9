import sys

from dlpack_conformance import main

if __name__ == "__main__":
    sys.exit(main())
