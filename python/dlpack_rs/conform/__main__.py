import sys

from dlpack_rs.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["conform", *sys.argv[1:]]))
