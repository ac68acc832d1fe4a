#!/bin/bash
# Collects what tools of this machine print in ordinary work: text in which no secret stands.
# usage: collect-logs.sh DIRECTORY   (about five minutes and 100 MB; what a machine does not have is left out)
set -u
out=${1:?usage: collect-logs.sh DIRECTORY}; mkdir -p "$out"; out=$(cd "$out" && pwd)
checkout=$(cd "$(dirname "$0")/../../../../.." && pwd)
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
log() { name=$1; shift; "$@" >"$out/$name.log" 2>&1 </dev/null || true; }

cd "$checkout" || exit 1
log npm-ls npm ls --all
log npm-ls-json npm ls --all --json
log npm-lock cat package-lock.json
log npm-ci-dry npm ci --dry-run --loglevel=http
log tsc npx tsc -p tsconfig.json --listFiles --extendedDiagnostics
log vitest npx vitest run --project unit libs/protocol --reporter=verbose
log biome npx biome check . --verbose --max-diagnostics=none
log git-log git log --stat
log git-log-patch git log -p --no-color -n 60
log git-raw git log --raw --pretty=fuller --show-signature
log modules-ls ls -lR node_modules
log modules-find find node_modules -type f -printf '%p %s %i %TY-%Tm-%TdT%TH:%TM:%TS\n'
log sums bash -c 'find node_modules -name "*.js" -print0 | head -zn 20000 | xargs -0 sha256sum'
log sums-512 bash -c 'find node_modules -name "*.js" -print0 | head -zn 8000 | xargs -0 sha512sum'
log md5 bash -c 'find node_modules -name "*.ts" -print0 | head -zn 20000 | xargs -0 md5sum'
log base64 bash -c 'find node_modules -name "*.wasm" -o -name "*.node" | head -20 | xargs cat | head -c 6000000 | base64'
log hexdump bash -c 'head -c 2000000 "$(readlink -f /bin/bash)" | hexdump -C'
log strings bash -c 'strings -n 6 "$(readlink -f "$(command -v node)")" | head -c 8000000'
log javascript bash -c 'find node_modules -name "*.js" -size -200k | head -4000 | xargs cat | head -c 20000000'
log usr-ls ls -lR /usr/share/doc /usr/lib
log ps ps auxww
log dpkg dpkg -l
log dpkg-status cat /var/lib/dpkg/status
log apt apt list --installed
log apt-show bash -c 'apt-cache show $(apt-cache pkgnames | head -3000)'
log mounts bash -c 'mount; df -h; ip addr; lsblk; cat /proc/cpuinfo /proc/meminfo /proc/self/maps; uname -a'
log env-names bash -c 'env | cut -d= -f1; set | head -300 | cut -d= -f1'
log pip pip list -v
log pip-json pip list --format json
log python-trace python3 -c 'import json,email,asyncio
def f(n):
    if n == 0: raise ValueError("bad value at 0x7f3a9c0012e0")
    f(n - 1)
import traceback
for n in range(400):
    try: f(n % 40)
    except ValueError: traceback.print_exc()'
log python-tests python3 -m unittest -v test.test_bisect test.test_json test.test_email
log python-v python3 -v -c 'import asyncio, http.client, unittest, xml.dom.minidom'
log node-trace node -e 'for (let i = 0; i < 2000; i++) { const f = (n) => { if (n === 0) throw new Error(`failed at ${Math.sqrt(i)}`); f(n - 1); }; try { f(i % 30); } catch (e) { console.error(e.stack); } }'
log docker-info docker info
log docker-images docker images --no-trunc
log docker-inspect bash -c 'docker images -q | head -5 | xargs -r docker image inspect'
log docker-history bash -c 'docker images -q | head -3 | xargs -rn1 docker history --no-trunc'
log uuid bash -c 'for i in $(seq 20000); do cat /proc/sys/kernel/random/uuid; done'

for n in $(seq 1 60); do
  printf '#include <stdio.h>\n#include <stdlib.h>\nstruct s%d { int a[%d]; char *p; };\nint f%d(struct s%d *x, unsigned y) { int unused; if (x->a[0] = y) return x->p == y; printf("%%d", x->p); }\nint main() { return f%d(0); }\n' "$n" "$n" "$n" "$n" "$n" >"$work/w$n.c"
done
log gcc bash -c "cd '$work'; for f in w*.c; do gcc -v -Wall -Wextra -c \$f; done"
log gcc-asm bash -c "cd '$work'; for f in w*.c; do gcc -w -fpermissive -S -o - \$f; done"
log objdump bash -c 'objdump -d "$(readlink -f /bin/ls)" | head -c 4000000'
log readelf bash -c 'readelf -aW "$(readlink -f /bin/bash)" | head -c 3000000'
log cmake bash -c "mkdir -p '$work/cm' && cd '$work/cm' && printf 'cmake_minimum_required(VERSION 3.10)\nproject(x C CXX)\nadd_executable(x ../w1.c)\n' >CMakeLists.txt && cmake . --trace-expand; make VERBOSE=1"
log cargo bash -c "cd '$work' && cargo new -q demo --vcs none && cd demo && cargo build -vv && cargo test -v; cargo metadata --offline"
log java bash -c "cd '$work' && printf 'class T { static void f(int n) { if (n == 0) throw new IllegalStateException(\"at \" + n); f(n - 1); } public static void main(String[] a) { for (int i = 0; i < 500; i++) try { f(i %% 50); } catch (Exception e) { e.printStackTrace(); } } }' >T.java && javac -verbose T.java && java -Xlog:gc*,class+load T"
log maven bash -c "cd '$work' && mvn -o -X validate"
du -sh "$out"
