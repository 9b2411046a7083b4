// Package process starts the background programs of a cluster, recognises them
// later and ends them.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Mark is the environment variable that carries the cluster's id in every
// process that a cluster starts.
const Mark = "FAIRLEAD_CLUSTER_ID"

// StartTime returns when the process was started, in clock ticks since boot.
// Together with the process id it names a process for good.
func StartTime(pid int) (uint64, error) {
	_, start, err := stat(pid)
	return start, err
}

// Alive tells whether the process with this id and start time runs still. One
// that has ended but was not yet collected by its parent does not.
func Alive(pid int, start uint64) bool {
	state, now, err := stat(pid)
	return err == nil && now == start && state != 'Z' && state != 'X'
}

// stat reads state and start time: fields 3 and 22 of /proc/<pid>/stat. The
// second field is a name in parentheses that may itself hold any character.
func stat(pid int) (state byte, start uint64, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	return parseStat(string(data))
}

func parseStat(text string) (state byte, start uint64, err error) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 || len(fields[0]) != 1 {
		return 0, 0, fmt.Errorf("unexpected process status %q", text)
	}
	start, err = strconv.ParseUint(fields[19], 10, 64)
	return fields[0][0], start, err
}

// Marked returns the ids of all processes, but the calling one, that carry the cluster's id.
func Marked(id string) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, err
	}
	want := []byte(Mark + "=" + id)
	var pids []int
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil { // ended meanwhile, or another user's
			continue
		}
		for entry := range bytes.SplitSeq(data, []byte{0}) {
			if bytes.Equal(entry, want) {
				pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
				if pid != os.Getpid() {
					pids = append(pids, pid)
				}
				break
			}
		}
	}
	return pids, nil
}

// Signal sends the signal, provided that the process is still the same one.
func Signal(pid int, start uint64, sig syscall.Signal) error {
	if !Alive(pid, start) {
		return nil
	}
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal process %d: %w", pid, err)
	}
	return nil
}
