// Command probe is what the test's containers run: it serves, and when it is
// called by exec it tells what a container sees.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sort"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 && len(args) != 3 {
		return fmt.Errorf("usage: probe serve ADDR | lookup NAME | get URL | read FILE | write FILE TEXT")
	}
	switch args[0] {
	case "serve":
		host, err := os.Hostname()
		if err != nil {
			return err
		}
		fmt.Println("serving as", host)
		return http.ListenAndServe(args[1], http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(w, host)
		}))
	case "lookup":
		addresses, err := net.LookupHost(args[1])
		sort.Strings(addresses)
		fmt.Println(strings.Join(addresses, " "))
		return err
	case "get":
		client := http.Client{Timeout: 5 * time.Second}
		response, err := client.Get(args[1])
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, err = io.Copy(os.Stdout, response.Body)
		return err
	case "read":
		data, err := os.ReadFile(args[1])
		os.Stdout.Write(data)
		return err
	case "write":
		return os.WriteFile(args[1], []byte(args[2]), 0o644)
	}
	return fmt.Errorf("unknown command %q", args[0])
}
