package linux

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

func dirname(p *process, names []string) int {
	p.refuse(len(names) != 1, "dirname", names)
	fmt.Fprintln(p.stream(1), path.Dir(names[0]))
	return 0
}

// ls lists folders, one name a line; -d names them instead.
func ls(p *process, names []string) int {
	itself := len(names) > 0 && names[0] == "-d"
	if itself {
		names = names[1:]
	}
	if len(names) == 0 {
		names = []string{p.dir}
	}
	for _, name := range names {
		found := p.lookup(name)
		switch {
		case found == nil:
			return p.complain("ls", name, syscall.ENOENT) + 1
		case itself || !found.isFolder():
			fmt.Fprintln(p.stream(1), name)
		default:
			for _, inside := range found.names() {
				fmt.Fprintln(p.stream(1), inside)
			}
		}
	}
	return 0
}

// mkdir knows -m and -p, which also creates missing parents.
func mkdir(p *process, arguments []string) int {
	parents, mode := false, fs.FileMode(0o755)
	for len(arguments) > 1 && strings.HasPrefix(arguments[0], "-") {
		switch arguments[0] {
		case "-p":
			parents = true
		case "-m":
			octal, err := strconv.ParseUint(arguments[1], 8, 9)
			p.refuse(err != nil, "mkdir", arguments)
			mode, arguments = fs.FileMode(octal), arguments[1:]
		default:
			return p.unknown("mkdir", arguments)
		}
		arguments = arguments[1:]
	}
	for _, name := range arguments {
		p.check(p.makeFolder(name, mode, parents), "mkdir", name)
	}
	return 0
}

func (p *process) makeFolder(name string, mode fs.FileMode, parents bool) error {
	if parents {
		if found := p.lookup(name); found != nil {
			if found.isFolder() {
				return nil
			}
			return syscall.EEXIST
		}
		if err := p.makeFolder(path.Dir(p.absolute(name)), 0o755, true); err != nil {
			return err
		}
	}
	made := folder("")
	made.mode = fs.ModeDir | mode
	return p.make(name, made)
}

func mkfifo(p *process, names []string) int {
	for _, name := range names {
		p.check(p.make(name, &entry{mode: fs.ModeNamedPipe | 0o644}), "mkfifo", name)
	}
	return 0
}

// mktemp creates a folder (-d) or a file with random last letters.
func mktemp(p *process, arguments []string) int {
	isFolder := len(arguments) > 0 && arguments[0] == "-d"
	if isFolder {
		arguments = arguments[1:]
	}
	pattern := "/tmp/tmp.XXXXXXXXXX"
	if len(arguments) > 0 {
		pattern = arguments[0]
	}
	stem := strings.TrimRight(pattern, "X")
	for range 100 {
		name := stem
		for range len(pattern) - len(stem) {
			name += string("abcdefghijklmnopqrstuvwxyz0123456789"[rand.IntN(36)])
		}
		made := &entry{mode: 0o600}
		if isFolder {
			made = folder("")
		}
		err := p.make(name, made)
		if errors.Is(err, syscall.EEXIST) && name != stem {
			continue
		}
		p.check(err, "mktemp", pattern)
		fmt.Fprintln(p.stream(1), name)
		return 0
	}
	return p.complain("mktemp", pattern, syscall.EEXIST)
}

func rm(p *process, arguments []string) int {
	force, deep := false, false
	for len(arguments) > 0 && strings.HasPrefix(arguments[0], "-") {
		force = force || strings.Contains(arguments[0], "f")
		deep = deep || strings.Contains(arguments[0], "r")
		arguments = arguments[1:]
	}
	status := 0
	for _, name := range arguments {
		found := p.lookup(name)
		switch {
		case found == nil && force:
		case found != nil && found.isFolder() && !deep:
			status = p.complain("rm", name, syscall.EISDIR)
		default:
			if err := p.unlink(name); err != nil {
				status = p.complain("rm", name, err)
			}
		}
	}
	return status
}

func rmdir(p *process, names []string) int {
	for _, name := range names {
		found := p.lookup(name)
		switch {
		case found == nil:
			return p.complain("rmdir", name, syscall.ENOENT)
		case !found.isFolder():
			return p.complain("rmdir", name, syscall.ENOTDIR)
		case len(found.children) > 0:
			return p.complain("rmdir", name, syscall.ENOTEMPTY)
		}
		p.check(p.unlink(name), "rmdir", name)
	}
	return 0
}

// stat knows -c %s and -f -c %T.
func stat(p *process, arguments []string) int {
	p.refuse(len(arguments) == 0, "stat", arguments)
	name := arguments[len(arguments)-1]
	found := p.lookup(name)
	if found == nil {
		return p.complain("stat", name, syscall.ENOENT)
	}
	options := arguments[:len(arguments)-1]
	switch {
	case slices.Equal(options, []string{"-c", "%s"}):
		fmt.Fprintln(p.stream(1), found.size)
	case slices.Equal(options, []string{"-f", "-c", "%T"}):
		fmt.Fprintln(p.stream(1), map[bool]string{true: "tmpfs", false: "ext2/ext3"}[found.inMemory])
	default:
		return p.unknown("stat", arguments)
	}
	return 0
}

// df knows -Pk of a folder.
func df(p *process, arguments []string) int {
	p.refuse(len(arguments) != 2 || arguments[0] != "-Pk", "df", arguments)
	found := p.lookup(arguments[1])
	if found == nil {
		return p.complain("df", arguments[1], syscall.ENOENT)
	}
	device, kb := "/dev/vda", int64(diskKB)
	if found.inMemory {
		device, kb = "tmpfs", sharedKB
	}
	fmt.Fprintln(p.stream(1), "Filesystem 1024-blocks Used Available Capacity Mounted on")
	fmt.Fprintln(p.stream(1), device, kb, 0, kb, "0%", "/")
	return 0
}

func bracket(p *process, arguments []string) int {
	if len(arguments) == 0 || arguments[len(arguments)-1] != "]" {
		fmt.Fprintln(p.stream(2), "[: missing ]")
		return 2
	}
	return test(p, arguments[:len(arguments)-1])
}

// test knows one primary of one or two operands, and `!`.
func test(p *process, words []string) int {
	if len(words) > 1 && words[0] == "!" {
		return map[int]int{0: 1, 1: 0, 2: 2}[test(p, words[1:])]
	}
	var holds bool
	switch len(words) {
	case 0:
	case 1:
		holds = words[0] != ""
	case 2:
		is := fileTests[words[0]]
		p.refuse(is == nil, "test", words)
		holds = is(p, words[1])
	case 3:
		compare := comparisons[words[1]]
		p.refuse(compare == nil, "test", words)
		var known bool
		if holds, known = compare(words[0], words[2]); !known {
			fmt.Fprintf(p.stream(2), "[: Illegal number: %s %s\n", words[0], words[2])
			return 2
		}
	default:
		return p.unknown("test", words)
	}
	return map[bool]int{true: 0, false: 1}[holds]
}

var fileTests = map[string]func(p *process, word string) bool{
	"-n": func(_ *process, word string) bool { return word != "" },
	"-z": func(_ *process, word string) bool { return word == "" },
	"-e": func(p *process, name string) bool { return p.lookup(name) != nil },
	"-d": func(p *process, name string) bool { found := p.lookup(name); return found != nil && found.isFolder() },
	"-f": func(p *process, name string) bool {
		found := p.lookup(name)
		return found != nil && found.mode.IsRegular()
	},
	"-O": func(p *process, name string) bool { return p.lookup(name) != nil }, // root owns everything
	"-L": func(*process, string) bool { return false },
	"-w": func(p *process, name string) bool {
		found := p.lookup(name)
		return found != nil && found.mode.Perm()&0o222 != 0
	},
}

var comparisons = map[string]func(a, b string) (holds, known bool){
	"=":   func(a, b string) (bool, bool) { return a == b, true },
	"!=":  func(a, b string) (bool, bool) { return a != b, true },
	"-eq": numbers(func(a, b int64) bool { return a == b }),
	"-ne": numbers(func(a, b int64) bool { return a != b }),
	"-lt": numbers(func(a, b int64) bool { return a < b }),
	"-le": numbers(func(a, b int64) bool { return a <= b }),
	"-gt": numbers(func(a, b int64) bool { return a > b }),
	"-ge": numbers(func(a, b int64) bool { return a >= b }),
}

func numbers(holds func(a, b int64) bool) func(a, b string) (bool, bool) {
	return func(a, b string) (bool, bool) {
		first, one := strconv.ParseInt(strings.TrimSpace(a), 10, 64)
		second, two := strconv.ParseInt(strings.TrimSpace(b), 10, 64)
		return holds(first, second), one == nil && two == nil
	}
}
