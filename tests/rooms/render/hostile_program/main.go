// What a program that was taken over might do, in place of kustomize or helm: each argument list is one way to do harm.
package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var acts = map[string]func([]string){
	"escape":     escape,
	"look":       look,
	"say":        say,
	"told":       told,
	"memory":     memory,
	"hidden":     hidden,
	"file":       file,
	"files":      files,
	"deep":       deep,
	"flood":      func([]string) { flood(os.Stdout) },
	"complain":   func([]string) { flood(os.Stderr) },
	"spin":       spin,
	"sleep":      func([]string) { sleep() },
	"wait":       wait,
	"close":      func([]string) { os.Stdout.Close(); os.Stderr.Close(); sleep() },
	"background": background,
	"bomb":       bomb,
	"forks":      forks,
	"threads":    threads,
	"unburied":   unburied,
	"reserve":    reserve,
	"vanish":     func(args []string) { fmt.Print(answer(os.RemoveAll(args[0]))) },
	"start":      start,
	"hasty":      hasty,
	"fail":       func([]string) { panic("failed") },
	"killed":     func([]string) { syscall.Kill(syscall.Getpid(), syscall.SIGKILL) },
}

func main() {
	acts[os.Args[1]](os.Args[2:])
}

func answer(err error) string {
	var number syscall.Errno
	if err == nil {
		return "done"
	}
	for each := err; each != nil; {
		if found, is := each.(syscall.Errno); is {
			number = found
		}
		inner, is := each.(interface{ Unwrap() error })
		if !is {
			break
		}
		each = inner.Unwrap()
	}
	if number == 0 {
		return err.Error()
	}
	return names[number]
}

var names = map[syscall.Errno]string{
	syscall.EPERM: "EPERM", syscall.EACCES: "EACCES", syscall.ENOSYS: "ENOSYS", syscall.EXDEV: "EXDEV", syscall.EFBIG: "EFBIG",
	syscall.ENOENT: "ENOENT", syscall.EAGAIN: "EAGAIN", syscall.EINVAL: "EINVAL", syscall.ESRCH: "ESRCH", syscall.EFAULT: "EFAULT",
	syscall.ECONNREFUSED: "ECONNREFUSED", syscall.EEXIST: "EEXIST", syscall.ENOMEM: "ENOMEM", syscall.ENOTDIR: "ENOTDIR",
}

// look prints its variables, its open descriptors, its directory and its files.
func look([]string) {
	var open []int
	for number := range 256 {
		var found syscall.Stat_t
		if syscall.Fstat(number, &found) == nil && found.Mode&syscall.S_IFMT != 0 {
			open = append(open, number)
		}
	}
	here, _ := os.Getwd()
	fmt.Println(strings.Join(os.Environ(), "\n"))
	fmt.Println("open:", open)
	fmt.Println("here:", here)
	filepath.Walk(".", func(path string, about os.FileInfo, _ error) error {
		fmt.Println("file:", path, about.Mode())
		return nil
	})
}

// say prints a file to standard output, words to standard error, and ends with a code: FILE WORDS CODE.
func say(args []string) {
	data, err := os.ReadFile(args[0])
	if err != nil {
		data = []byte(err.Error())
	}
	os.Stdout.Write(data)
	io.WriteString(os.Stderr, args[1])
	code, _ := strconv.Atoi(args[2])
	os.Exit(code)
}

// told makes a file on another thread, then prints what it reads on standard input, and how many files lie there after that.
func told([]string) {
	made := make(chan error)
	runtime.LockOSThread()
	go func() { made <- os.WriteFile("mark", nil, 0o600) }()
	<-made
	said, _ := io.ReadAll(os.Stdin)
	found, _ := os.ReadDir(".")
	fmt.Print(string(said), " ", len(found))
}

func memory([]string) {
	var kept [][]byte
	for {
		piece := make([]byte, 16<<20)
		for at := 0; at < len(piece); at += 4096 {
			piece[at] = 1
		}
		kept = append(kept, piece)
	}
}

// hidden does the same after the first thread of the process has ended.
func hidden(args []string) {
	debug.SetGCPercent(-1) // the collector would wait for that thread
	debug.SetMemoryLimit(math.MaxInt64)
	go memory(args)
	syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
}

func file(args []string) {
	made, err := os.Create(args[0])
	for err == nil {
		_, err = made.Write(make([]byte, 1<<20))
	}
	fmt.Print(answer(err))
}

func files([]string) {
	for number := 0; ; number++ {
		os.WriteFile(strconv.Itoa(number), nil, 0o600)
	}
}

// deep makes directories below each other, deeper than a path can be long, the last ones closed; and waits to be killed there.
func deep([]string) {
	for range 3000 {
		if syscall.Mkdir("d", 0o700) != nil || syscall.Chdir("d") != nil {
			break
		}
	}
	syscall.Mkdir("closed", 0)
	fmt.Print("made")
}

func flood(stream *os.File) {
	piece := []byte(strings.Repeat("x", 1<<16))
	for {
		if _, err := stream.Write(piece); err != nil {
			sleep()
		}
	}
}

func spin([]string) {
	for range 2 {
		go func() {
			for {
			}
		}()
	}
	for {
	}
}

func sleep() {
	for {
		time.Sleep(time.Hour)
	}
}

// wait ends when its directory holds a file `go`, and says what an attempt on a neighbour's directory came to before.
func wait(args []string) {
	os.WriteFile("mine", []byte("private"), 0o600)
	for {
		if _, err := os.Stat("go"); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func background(args []string) {
	fmt.Print(answer(exec.Command(args[0], "sleep").Start()))
}

func bomb(args []string) {
	for {
		exec.Command(args[0], "bomb", args[0]).Start()
	}
}

// forks doubles as fast as the kernel can.
func forks([]string) {
	for {
		syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	}
}

// reserve takes addresses without using them: what they are mapped by is no resident memory.
func reserve([]string) {
	_, err := syscall.Mmap(-1, 0, 128<<30, syscall.PROT_NONE, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	fmt.Print(answer(err))
}

// unburied starts more than it may, of which most have ended and none is waited for.
func unburied([]string) {
	for range 8 {
		pid, _, _ := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		if pid == 0 {
			syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
		time.Sleep(20 * time.Millisecond)
	}
	fmt.Print("done")
}

func threads([]string) {
	for range 1000 {
		go syscall.Nanosleep(&syscall.Timespec{Sec: 3600}, nil)
	}
	sleep()
}

// hasty ends while it starts threads; with a path and a number, it starts so many that do, then prints how the last one ended.
func hasty(args []string) {
	if len(args) == 0 {
		for range 8 {
			go func() { runtime.LockOSThread(); select {} }()
		}
		time.Sleep(50 * time.Microsecond)
		os.Exit(0)
	}
	count, _ := strconv.Atoi(args[1])
	for range count {
		if err := exec.Command(args[0], "hasty").Run(); err != nil {
			fmt.Print(answer(err))
			return
		}
	}
	fmt.Print("done")
}

// start starts another program and prints what it said: PATH ARGUMENTS.
func start(args []string) {
	said, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	fmt.Print(answer(err), " ", string(said))
}
