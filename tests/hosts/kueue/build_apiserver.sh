#!/usr/bin/env bash
# Build kube-apiserver 1.20 from the source package of Debian 12, without any network access but apt's.
#
#   build_apiserver.sh FOLDER      writes FOLDER/kube-apiserver; about 7 minutes of CPU, 3 GB while it builds
#
# Needs Debian 12 with: apt-get install golang-1.19-go etcd-server dpkg-dev openssl
# The tests find the binary in MAST_OPT_KUBE_APISERVER, or in ~/.cache/mast-opt/kube-apiserver.
set -euo pipefail

mkdir -p "$1"
target=$(realpath "$1")
work=$(mktemp -d "${TMPDIR:-/tmp}/apiserver.XXXXXX")
trap 'rm -rf "$work"' EXIT
source_root=$work/gopath/src/k8s.io/kubernetes

# apt with lists of its own and the machine's sources, for which it gets source packages too: the machine's settings stay as they are.
private_apt() { APT_CONFIG=$work/apt.conf apt-get -qq "$@"; }

get_sources() {
  mkdir -p "$work"/{lists/partial,cache/archives/partial,packages,libraries,sources} "$source_root"
  cp /etc/apt/sources.list.d/*.{list,sources} "$work/sources" 2> /dev/null || true
  cp /etc/apt/sources.list "$work/sources/machine.list" 2> /dev/null || true
  find "$work/sources" -name '*.list' -exec sed --in-place 's/^deb \(.*\)/&\ndeb-src \1/' {} +
  find "$work/sources" -name '*.sources' -exec sed --in-place 's/^Types: *deb *$/Types: deb deb-src/' {} +
  cat > "$work/apt.conf" << END
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$work/sources";
Dir::State::lists "$work/lists";
Dir::Cache "$work/cache";
APT::Sandbox::User "root";
END
  cd "$work/packages"
  private_apt update
  private_apt source --download-only kubernetes
  private_apt download golang-github-modern-go-reflect2-dev golang-github-json-iterator-go-dev
  tar --extract --gzip --strip-components=1 --directory "$source_root" --file kubernetes_*.orig.tar.gz
  for package in *.deb; do dpkg-deb --extract "$package" "$work/libraries"; done
}

# Kubernetes 1.20 was written for Go 1.15. Two of its vendored libraries crash when built by Go 1.18 or later (reflect2 1.0.1 reads the
# runtime's map type), and from Go 1.19 on its schema validation takes an empty string for a null, so that it refuses "" in a CRD.
adapt_to_go_1_19() {
  cd "$source_root/vendor"
  local library
  for library in github.com/modern-go/reflect2 github.com/json-iterator/go; do
    rm -r "$library"
    cp -r "$work/libraries/usr/share/gocode/src/$library" "$library"
  done
  local is_null='if data == nil || reflect.DeepEqual(reflect.Zero(reflect.TypeOf(data)), reflect.ValueOf(data)) {'
  for file in github.com/go-openapi/validate/type.go k8s.io/kube-openapi/pkg/validation/validate/type.go; do
    grep -qF "$is_null" "$file" || { echo "$file: the line to change is not there" >&2; exit 1; }
    python3 - "$file" "$is_null" << 'END'
import sys
from pathlib import Path
file = Path(sys.argv[1])
file.write_text(file.read_text().replace(sys.argv[2], "if data == nil {"))
END
  done
}

# The API's OpenAPI definitions are generated code, which the source package does not hold.
generate_openapi() {
  cd "$source_root"
  local generator=k8s.io/kubernetes/vendor/k8s.io/kube-openapi/cmd/openapi-gen vendored=k8s.io/kubernetes/vendor/k8s.io
  go build -o "$work/openapi-gen" "$generator"
  local packages
  packages=$(grep --recursive --files-with-matches --include='*.go' -- '+k8s:openapi-gen=' cmd pkg plugin staging/src/k8s.io |
    grep --invert-match --extended-regexp '_test\.go$|/testdata/|sample|code-generator|zz_generated|/generated/' |
    xargs --max-args=1 dirname | sort --unique | sed --expression='s,^staging/src/k8s.io,vendor/k8s.io,' --expression='s,^,k8s.io/kubernetes/,')
  packages+=$'\n'$(printf "$vendored/apimachinery/pkg/%s\n" apis/meta/v1 runtime version)
  "$work/openapi-gen" --input-dirs "$(sort --unique <<< "$packages" | paste --serial --delimiters=,)" --output-package k8s.io/kubernetes/pkg/generated/openapi \
    --output-file-base zz_generated.openapi --go-header-file hack/boilerplate/boilerplate.generatego.txt --report-filename /dev/null
}

export PATH=/usr/lib/go-1.19/bin:$PATH
export GOPATH=$work/gopath GOCACHE=$work/gocache GO111MODULE=off GOPROXY=off GOFLAGS="" CGO_ENABLED=0
go version | grep -q 'go1\.19' || { echo "needs Go 1.19 (golang-1.19-go), not $(go version)" >&2; exit 1; }
get_sources
adapt_to_go_1_19
generate_openapi
cd "$source_root"
go build -ldflags "-s -w" -o "$work/kube-apiserver" k8s.io/kubernetes/cmd/kube-apiserver
mv "$work/kube-apiserver" "$target/kube-apiserver"
ls -l "$target/kube-apiserver"
