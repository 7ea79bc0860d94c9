#!/bin/sh
# device.py, also where nothing says where programs are.
PATH=${PATH:-/usr/local/bin:/usr/bin:/bin}
export PATH
exec python3 -B "$(CDPATH='' cd "${0%/*}" && pwd)/device.py" "$@"
