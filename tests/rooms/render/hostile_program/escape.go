package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"
)

// Numbers that package syscall doesn't have: of x86_64, of aarch64.
var numbers = map[string][2]uintptr{
	"bpf": {321, 280}, "memfd_create": {319, 279}, "userfaultfd": {323, 282}, "setns": {308, 268}, "process_vm_readv": {310, 270},
	"io_uring_setup": {425, 425}, "pidfd_open": {434, 434}, "pidfd_getfd": {438, 438}, "clone3": {435, 435}, "openat2": {437, 437},
	"seccomp": {317, 277}, "fsopen": {430, 430}, "open_tree": {428, 428}, "fchmodat2": {452, 452}, "process_madvise": {440, 440},
}

func called(number uintptr, arguments ...uintptr) error {
	var words [6]uintptr
	copy(words[:], arguments)
	_, _, failed := syscall.RawSyscall6(number, words[0], words[1], words[2], words[3], words[4], words[5])
	if failed != 0 {
		return failed
	}
	return nil
}

func named(name string, arguments ...uintptr) error {
	column := 0
	if runtime.GOARCH == "arm64" {
		column = 1
	}
	return called(numbers[name][column], arguments...)
}

func text(path string) uintptr {
	pointer, _ := syscall.BytePtrFromString(path)
	return uintptr(unsafe.Pointer(pointer))
}

func open(path string, flags int) error {
	number, err := syscall.Open(path, flags, 0o600)
	if err == nil {
		syscall.Close(number)
	}
	return err
}

func list(path string) error {
	_, err := os.ReadDir(path)
	return err
}

func connect(kind int, address syscall.Sockaddr, family int) error {
	number, err := syscall.Socket(family, kind, 0)
	if err != nil {
		return err
	}
	return syscall.Connect(number, address)
}

func peek(pid int) error {
	vector := [2]uintptr{0, 1}
	at := uintptr(unsafe.Pointer(&vector))
	return named("process_vm_readv", uintptr(pid), at, 1, at, 1)
}

func fork(flags uintptr) error {
	pid, _, failed := syscall.RawSyscall6(syscall.SYS_CLONE, flags|uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if failed == 0 && pid == 0 {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	}
	if failed != 0 {
		return failed
	}
	syscall.Wait4(int(pid), nil, 0, nil) // else it may still be ending when this program has ended
	return nil
}

// escape tries to reach everything outside: PLACE WORKER PORT NEIGHBOUR. The place has files that every user may write, a socket, secrets.
func escape(args []string) {
	place, neighbour := args[0], args[3]
	worker, _ := strconv.Atoi(args[1])
	port, _ := strconv.Atoi(args[2])
	supervisor := syscall.Getppid()
	here, _ := os.Getwd()
	there, tcp := filepath.Join(place, "there"), &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	proc := func(pid int, name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }
	attempts := []struct {
		name string
		try  func() error
	}{
		{"read a secret of the worker's", func() error { return open(filepath.Join(place, "secret"), syscall.O_RDONLY) }},
		{"read a file of all", func() error { return open(there, syscall.O_RDONLY) }},
		{"read by openat2", func() error {
			how := [3]uint64{}
			return named("openat2", ^uintptr(99), text(there), uintptr(unsafe.Pointer(&how)), 24)
		}},
		{"read /etc/passwd", func() error { return open("/etc/passwd", syscall.O_RDONLY) }},
		{"read the worker's environment", func() error { return open(proc(worker, "environ"), syscall.O_RDONLY) }},
		{"read the worker's memory", func() error { return open(proc(worker, "mem"), syscall.O_RDONLY) }},
		{"read the worker's command", func() error { return open(proc(worker, "cmdline"), syscall.O_RDONLY) }},
		{"read the supervisor's environment", func() error { return open(proc(supervisor, "environ"), syscall.O_RDONLY) }},
		{"write the supervisor's memory", func() error { return open(proc(supervisor, "mem"), syscall.O_RDWR) }},
		{"read its own environment", func() error { return open("/proc/self/environ", syscall.O_RDONLY) }},
		{"list the root", func() error { return list("/") }},
		{"list the temporary files", func() error { return list(os.Args[6]) }},
		{"list the other runs", func() error { return list(filepath.Dir(filepath.Dir(here))) }},
		{"list a neighbour", func() error { return list(neighbour) }},
		{"read a neighbour's file", func() error { return open(filepath.Join(neighbour, "mine"), syscall.O_RDONLY) }},
		{"write to a neighbour", func() error { return open(filepath.Join(neighbour, "go"), syscall.O_CREAT|syscall.O_WRONLY) }},
		{"write a file of all", func() error { return open(there, syscall.O_WRONLY) }},
		{"cut a file of all", func() error { return open(there, syscall.O_RDONLY|syscall.O_TRUNC) }},
		{"truncate", func() error { return syscall.Truncate(there, 0) }},
		{"make a file outside", func() error { return open(filepath.Join(place, "new"), syscall.O_CREAT|syscall.O_WRONLY) }},
		{"make a directory outside", func() error { return syscall.Mkdir(filepath.Join(place, "directory"), 0o700) }},
		{"remove a file outside", func() error { return syscall.Unlink(there) }},
		{"move a file out", func() error {
			os.WriteFile("out", nil, 0o600)
			return syscall.Rename("out", filepath.Join(place, "out"))
		}},
		{"move a file in", func() error { return syscall.Rename(there, "in") }},
		{"make a symbolic link", func() error { return syscall.Symlink("/etc", "link") }},
		{"make a hard link", func() error { return syscall.Link(there, "hard") }},
		{"make a hard link inside", func() error { return syscall.Link("out", "hard") }},
		{"make a pipe of a name", func() error { return syscall.Mkfifo("fifo", 0o600) }},
		{"make a device", func() error { return syscall.Mknod("device", syscall.S_IFCHR|0o600, 0x103) }},
		{"change a mode", func() error { return syscall.Chmod(there, 0o777) }},
		{"change a mode anew", func() error { return named("fchmodat2", ^uintptr(99), text(there), 0o777, 0) }},
		{"change an owner", func() error { return syscall.Chown(there, syscall.Getuid(), -1) }},
		{"change times", func() error { return syscall.Utimes(there, make([]syscall.Timeval, 2)) }},
		{"set an attribute", func() error { return syscall.Setxattr(there, "user.x", []byte("x"), 0) }},
		{"read an attribute", func() error { _, err := syscall.Getxattr(there, "user.x", make([]byte, 9)); return err }},
		{"watch", func() error { _, err := syscall.InotifyInit1(0); return err }},
		{"become a shell", func() error { return syscall.Exec("/bin/sh", []string{"sh", "-c", "echo done"}, nil) }},
		{"become a file of its own", func() error {
			os.WriteFile("program", []byte("#!/bin/sh\n"), 0o700)
			return syscall.Exec("program", []string{"program"}, nil)
		}},
		{"connect", func() error { return connect(syscall.SOCK_STREAM, tcp, syscall.AF_INET) }},
		{"send a datagram", func() error { return connect(syscall.SOCK_DGRAM, tcp, syscall.AF_INET) }},
		{"connect by IPv6", func() error {
			return connect(syscall.SOCK_STREAM, &syscall.SockaddrInet6{Port: port}, syscall.AF_INET6)
		}},
		{"connect to a socket of a path", func() error {
			return connect(syscall.SOCK_STREAM, &syscall.SockaddrUnix{Name: filepath.Join(place, "socket")}, syscall.AF_UNIX)
		}},
		{"connect to an abstract socket", func() error {
			return connect(syscall.SOCK_STREAM, &syscall.SockaddrUnix{Name: "@anneal-" + args[1]}, syscall.AF_UNIX)
		}},
		{"ask the kernel's network", func() error { _, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW, 0); return err }},
		{"open a raw socket", func() error { _, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_RAW, 1); return err }},
		{"open a packet socket", func() error { _, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW, 0); return err }},
		{"make a pair of sockets", func() error { _, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0); return err }},
		{"listen", func() error { return syscall.Listen(0, 1) }},
		{"trace the worker", func() error { return called(syscall.SYS_PTRACE, 0x4206, uintptr(worker)) }},
		{"trace the supervisor", func() error { return called(syscall.SYS_PTRACE, 0x4206, uintptr(supervisor)) }},
		{"be traced", func() error { return called(syscall.SYS_PTRACE, 0) }},
		{"peek into the worker", func() error { return peek(worker) }},
		{"peek into the supervisor", func() error { return peek(supervisor) }},
		{"signal the worker", func() error { return syscall.Kill(worker, 0) }},
		{"kill the worker", func() error { return syscall.Kill(worker, syscall.SIGKILL) }},
		{"kill the supervisor", func() error { return syscall.Kill(supervisor, syscall.SIGKILL) }},
		{"kill a thread of the supervisor", func() error {
			return called(syscall.SYS_TGKILL, uintptr(supervisor), uintptr(supervisor), uintptr(syscall.SIGKILL))
		}},
		{"kill the group", func() error { return syscall.Kill(0, syscall.SIGKILL) }},
		{"kill all", func() error { return syscall.Kill(-1, syscall.SIGKILL) }},
		{"queue a signal", func() error { return called(syscall.SYS_RT_SIGQUEUEINFO, uintptr(supervisor), 9, text("")) }},
		{"own a descriptor's signals", func() error { return called(syscall.SYS_FCNTL, 0, syscall.F_SETOWN, uintptr(supervisor)) }},
		{"hold a process", func() error { return named("pidfd_open", uintptr(supervisor), 0) }},
		{"take a descriptor", func() error { return named("pidfd_getfd", 0, 3, 0) }},
		{"limit the supervisor", func() error {
			limit := [2]uint64{0, 0}
			return called(syscall.SYS_PRLIMIT64, uintptr(supervisor), 0, uintptr(unsafe.Pointer(&limit)))
		}},
		{"lift its own limits", func() error {
			return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1 << 40, Max: 1 << 40})
		}},
		{"slow the supervisor", func() error { return syscall.Setpriority(0, supervisor, 19) }},
		{"share memory of no file", func() error {
			_, err := syscall.Mmap(-1, 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_ANON)
			return err
		}},
		{"share a file's memory", func() error {
			file, err := os.OpenFile("out", os.O_CREATE|os.O_RDWR, 0o600)
			if err != nil {
				return nil
			}
			defer file.Close()
			_, err = syscall.Mmap(int(file.Fd()), 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
			return err
		}},
		{"make a file without a name", func() error { return open(".", 0x400000|syscall.O_DIRECTORY|syscall.O_RDWR) }},
		{"remove a file of its own", func() error {
			os.WriteFile("own", nil, 0o600)
			return syscall.Unlink("own")
		}},
		{"remove a directory of its own", func() error {
			os.Mkdir("empty", 0o700)
			return syscall.Rmdir("empty")
		}},
		{"move a file over another of its own", func() error {
			os.WriteFile("other", nil, 0o600)
			return syscall.Rename("own", "other")
		}},
		{"make shared memory", func() error { return called(syscall.SYS_SHMGET, 0, 4096, 0o1600) }},
		{"make a queue", func() error { return called(syscall.SYS_MSGGET, 0, 0o1600) }},
		{"make a semaphore", func() error { return called(syscall.SYS_SEMGET, 0, 1, 0o1600) }},
		{"make a queue of a name", func() error {
			return called(syscall.SYS_MQ_OPEN, text("anneal"), syscall.O_CREAT|syscall.O_RDWR, 0o600)
		}},
		{"make memory a file", func() error { return named("memfd_create", text("x"), 0) }},
		{"leave its users", func() error { return syscall.Unshare(syscall.CLONE_NEWUSER) }},
		{"leave its mounts", func() error { return syscall.Unshare(syscall.CLONE_NEWNS) }},
		{"enter a namespace", func() error { return named("setns", 0, 0) }},
		{"lead a session", func() error { _, err := syscall.Setsid(); return err }},
		{"leave its group", func() error { return syscall.Setpgid(0, 0) }},
		{"fork", func() error { return fork(0) }},
		{"fork beside its parent", func() error { return fork(0x8000) }},
		{"fork users", func() error { return fork(syscall.CLONE_NEWUSER) }},
		{"fork anew", func() error {
			flags := [11]uint64{}
			return named("clone3", uintptr(unsafe.Pointer(&flags)), 88)
		}},
		{"mount", func() error { return syscall.Mount("none", here, "tmpfs", 0, "") }},
		{"mount anew", func() error { return named("fsopen", text("tmpfs"), 0) }},
		{"copy a mount", func() error { return named("open_tree", ^uintptr(99), text("/"), 1) }},
		{"change its root", func() error { return syscall.Chroot(here) }},
		{"use keys", func() error { return called(syscall.SYS_KEYCTL, 0, ^uintptr(2), 1) }},
		{"use bpf", func() error { return named("bpf", 0, 0, 0) }},
		{"measure", func() error { return called(syscall.SYS_PERF_EVENT_OPEN, 0, 0, 0, 0, 0) }},
		{"use io_uring", func() error { return named("io_uring_setup", 1, text("")) }},
		{"handle faults", func() error { return named("userfaultfd", 0) }},
		{"advise another", func() error { return named("process_madvise", 0, 0, 0, 0, 0) }},
		{"filter anew", func() error { return named("seccomp", 2, 0, text("\x00\x00\xff\x7f")) }},
		{"become root", func() error { return called(syscall.SYS_SETUID, 0) }},
		{"be dumped", func() error { return called(syscall.SYS_PRCTL, 4, 1) }},
		{"set the clock", func() error { return called(syscall.SYS_SETTIMEOFDAY, 0, 0) }},
	}
	for _, attempt := range attempts {
		fmt.Printf("%s: %s\n", attempt.name, answer(attempt.try()))
	}
}
