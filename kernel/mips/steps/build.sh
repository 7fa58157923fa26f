# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds everything into $build: kernels, module, guest programs, initial file system.

version=6.1
export ARCH=mips CROSS_COMPILE=mipsel-linux-gnu-
jobs=-j$(nproc)

install_packages() {
    local missing=() package
    for package in "$@"; do
        dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q ' installed$' || missing+=("$package")
    done
    [ ${#missing[@]} = 0 ] && return
    say "installing ${missing[*]}"
    if ! { [ "$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$build/packages.log" 2>&1; then
        fail "these packages are missing and could not be installed here: sudo apt-get install ${missing[*]}"
    fi
}

unpack_source() {
    local source=$build/linux-source-$version
    [ -e "$source/.patched" ] && cmp -s kernel.patch "$source/.patched" && return
    say "unpacking and patching Linux $version"
    rm -rf "$source"
    tar -C "$build" -xf /usr/src/linux-source-$version.tar.xz
    patch -d "$source" -p1 --quiet <kernel.patch
    cp kernel.patch "$source/.patched"
}

# Leaves $build/vmlinux.NAME and the sizes of what the patch touches. The three share their
# objects: another configuration rebuilds only what depends on it.
build_kernel() { # name option...
    local name=$1 objects=$build/objects option
    shift
    say "kernel: $name"
    mkdir -p "$objects"
    { cat kernel.config; for option in "$@"; do echo "$option=y"; done; } >"$build/$name.config"
    make -s -C "$build/linux-source-$version" O="$objects" KCONFIG_ALLCONFIG="$build/$name.config" allnoconfig >/dev/null
    make -s -C "$build/linux-source-$version" O="$objects" "$jobs" vmlinux modules >"$build/$name.log" 2>&1 ||
        fail "the kernel did not build, see $build/$name.log"
    cp "$objects/vmlinux" "$build/vmlinux.$name"
    local touched=(entry genex process unaligned) file files=()
    for file in "${touched[@]}" k1magic; do files+=("$objects/arch/mips/kernel/$file.o"); done
    [ "$name" = stock ] && unset 'files[-1]'
    mipsel-linux-gnu-size "${files[@]}" "$objects"/arch/mips/mm/{tlbex,mmap}.o >"$build/size.$name"
}

build_module() {
    say "module, and twins that break a promise each"
    mkdir -p "$build/module"
    cp -u module/* "$build/module/"
    make -s -C "$build/objects" M="$build/module" modules >"$build/module.log" 2>&1 ||
        fail "the module did not build, see $build/module.log"
}

# The programs are static, so no code need find its own address first.
compile() { # source: one object of the guest
    local object=$build/guest/$(basename "${1%.*}").o
    mipsel-linux-gnu-gcc -O2 -fno-pic -mplt -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -Imodule -Iguest -c -o "$object" "$1"
}

link() { # program object...
    local program=$1 objects=() name
    shift
    for name in "$@"; do objects+=("$build/guest/$name.o"); done
    mipsel-linux-gnu-gcc -static -o "$build/guest/$program" "${objects[@]}"
}

# Of our own objects only: what comes from libc may have its own.
refuse_llsc() {
    local object
    for object in "$build"/guest/*.o; do
        [ "$(basename "$object")" = llsc.o ] && continue
        if mipsel-linux-gnu-objdump -d "$object" | grep -qwE 'll|sc'; then
            fail "$object has ll or sc"
        fi
    done
    say "no ll or sc in the objects of the guest, but in llsc.o"
}

build_guest() {
    local source
    say "guest programs"
    mkdir -p "$build/guest"
    for source in guest/*.c guest/*.S; do compile "$source"; done
    refuse_llsc
    link init init
    link tests tests check contract exceptions offenders mappings modules pages probe tst
    link stress stress check operations rseq tst
    link deaths deaths check lamport daemon
    link bench bench check methods lamport daemon sync syscall llsc tst
    {
        printf 'dir %s 0755 0 0\n' /dev /proc /sys
        echo 'nod /dev/console 0600 0 0 c 5 1'
        printf 'file /%s %s 0755 0 0\n' init "$build/guest/init" tests "$build/guest/tests" stress "$build/guest/stress" deaths "$build/guest/deaths" bench "$build/guest/bench"
        printf 'file /%s.ko %s 0644 0 0\n' tst "$build/module/tst.ko" tst_clobber "$build/module/tst_clobber.ko" \
            tst_overlong "$build/module/tst_overlong.ko" tst_plain "$build/module/tst_plain.ko"
    } >"$build/files"
    "$build/objects/usr/gen_init_cpio" "$build/files" >"$build/initramfs"
}

# Debian's own kernel for this board, fetched by the package client for that architecture.
fetch_debian_kernel() {
    local state=$build/debian package
    ls "$state"/boot/vmlinuz-* >/dev/null 2>&1 && return
    say "Debian's kernel for Malta"
    mkdir -p "$state"/lists/partial "$state"/cache/archives/partial
    : >"$state/status"
    local client=(-o APT::Architecture=mipsel -o APT::Architectures=mipsel -o Dir::State::lists="$state/lists"
        -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache" -o APT::Sandbox::User=root)
    apt-get "${client[@]}" update -qq >"$build/debian.log" 2>&1 || return 1
    package=$(apt-cache "${client[@]}" depends linux-image-4kc-malta 2>>"$build/debian.log" | awk '/Depends: linux-image/ { print $2; exit }')
    [ -n "$package" ] || return 1
    (cd "$state" && apt-get "${client[@]}" download "$package" >>"$build/debian.log" 2>&1 && dpkg-deb --fsys-tarfile ./*.deb | tar -x ./boot && rm ./*.deb)
}
