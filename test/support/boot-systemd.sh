#!/bin/bash
# Runs systemd as process 1 of namespaces of its own: boot-systemd.sh <folder> <node>. It sees this machine's files, without what it
# writes to them, the folder as /mnt, and Node.js as /usr/bin/node; its network is a loopback alone.
set -eu
folder="$1" node="$2"

# systemd takes over its whole control group, so it gets one of its own
mkdir "$folder/cgroup" && mount -t cgroup2 cgroup2 "$folder/cgroup"
group="$folder/cgroup/gatehouse-$$"
mkdir "$group"
remove_group() { find "$group" -depth -type d -exec rmdir {} + 2> /dev/null || true; }
trap remove_group EXIT

boot() {
  root="$folder/root"
  mkdir "$root" && mount -t tmpfs tmpfs "$root"
  mkdir "$root/upper" "$root/work" "$root/merged"
  mount -t overlay overlay -o "lowerdir=/,upperdir=$root/upper,workdir=$root/work" "$root/merged"
  mount --bind "$folder" "$root/merged/mnt"
  cd "$root/merged"
  mount -t proc proc proc
  mount --bind proc/sys proc/sys && mount -o remount,ro,bind proc/sys
  mount -t sysfs -o ro sysfs sys
  mount -t cgroup2 cgroup2 sys/fs/cgroup
  mount -t tmpfs tmpfs run
  mount -t tmpfs tmpfs tmp
  mount -t tmpfs -o mode=755 tmpfs dev
  for name in null zero full random urandom tty; do
    touch "dev/$name" && mount --bind "/dev/$name" "dev/$name"
  done
  ln -s /proc/self/fd dev/fd
  ln -s /proc/self/fd/0 dev/stdin
  mkdir dev/pts dev/shm && mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts && ln -s pts/ptmx dev/ptmx
  touch usr/bin/node && mount --bind "$node" usr/bin/node
  # The machine's own services are no part of it
  rm -rf etc/systemd/system/*.wants etc/rc?.d
  : > etc/fstab
  : > etc/machine-id
  mkdir old && pivot_root . old && umount -l /old
  exec env -i container=other PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --system --unit=multi-user.target
}
export -f boot
export folder node
(
  echo "$BASHPID" > "$group/cgroup.procs"
  exec unshare --pid --mount --uts --ipc --cgroup --net --fork --kill-child bash -euc boot
)
