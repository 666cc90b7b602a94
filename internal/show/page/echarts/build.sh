#!/bin/sh
# Builds echarts.js from the npm packages that package-lock.json pins.
#   build.sh          writes echarts.js and the licences
#   build.sh --check  fails unless a new build is byte for byte what is committed
# Needs Node.js with npm. Only for whoever changes the versions: sshpace itself
# is built from the committed file.
set -eu
cd "$(dirname "$0")"
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp package.json package-lock.json .npmrc entry.js "$work"
(
	cd "$work"
	npm ci --ignore-scripts --silent
	node_modules/.bin/esbuild entry.js --bundle --minify --format=iife --global-name=echarts \
		--target=es2020 --charset=ascii --legal-comments=none \
		--define:process.env.NODE_ENV='"production"' \
		--banner:js="$(cat "$here/banner.txt")" --outfile=echarts.js --log-level=warning
)
if [ "${1:-}" = --check ]; then
	cmp "$work/echarts.js" echarts.js && echo "echarts.js is what its sources give"
	exit
fi
cp "$work/echarts.js" echarts.js
mkdir -p licenses
cp "$work/node_modules/echarts/LICENSE" licenses/echarts-LICENSE
cp "$work/node_modules/echarts/NOTICE" licenses/echarts-NOTICE
cp "$work/node_modules/zrender/LICENSE" licenses/zrender-LICENSE
cp "$work/node_modules/tslib/LICENSE.txt" licenses/tslib-LICENSE
wc -c echarts.js
