// Command image builds the project's container images without a container engine and without a registry.
//
//	go run ./hack/image dorissim --out DIR [--fe-tag NAME:TAG] [--be-tag NAME:TAG] [--program FILE]
//	go run ./hack/image operator --binary PATH --out DIR [--tag TAG]
//
// The paths of the archives go to standard output, progress to standard error.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/fairlead-dev/fairlead/test/image"
)

const usage = "usage: image dorissim|operator --out DIR [flags]; names of images are whole ones, such as apache/doris:be-2.1.9"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	var files []string
	var err error
	switch os.Args[1] {
	case "dorissim":
		files, err = dorissim(ctx, os.Args[2:])
	case "operator":
		files, err = operator(os.Args[2:])
	default:
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
	for _, f := range files {
		fmt.Println(f)
	}
}

func dorissim(ctx context.Context, args []string) ([]string, error) {
	cache, err := image.DefaultCacheDir()
	if err != nil {
		return nil, err
	}
	d := image.Doris{Base: image.Base{Packages: image.BasePackages, Log: os.Stderr}}
	flags := flag.NewFlagSet("dorissim", flag.ExitOnError)
	flags.StringVar(&d.OutDir, "out", "", "directory for the archives")
	flags.StringVar(&d.FETag, "fe-tag", image.DefaultFETag, "whole name of the FE image; the version in its tag is the one reported")
	flags.StringVar(&d.BETag, "be-tag", image.DefaultBETag, "whole name of the BE image, such as apache/doris:be-2.1.9")
	flags.StringVar(&d.Program, "program", "", "the dorissim binary (default: built here)")
	flags.StringVar(&d.Base.CacheDir, "cache", cache, "directory of the cached base layer")
	_ = flags.Parse(args)
	if d.OutDir == "" {
		return nil, fmt.Errorf("--out is missing; %s", usage)
	}
	return d.Build(ctx)
}

func operator(args []string) ([]string, error) {
	var o image.Operator
	flags := flag.NewFlagSet("operator", flag.ExitOnError)
	flags.StringVar(&o.Binary, "binary", "", "the operator's static binary")
	flags.StringVar(&o.OutDir, "out", "", "directory for the archive")
	flags.StringVar(&o.Tag, "tag", image.DefaultOperatorTag, "name of the image")
	flags.StringVar(&o.CACerts, "ca-certs", "", "file of certificates to trust")
	_ = flags.Parse(args)
	if o.Binary == "" || o.OutDir == "" {
		return nil, fmt.Errorf("--binary and --out are needed; %s", usage)
	}
	file, err := o.Build()
	return []string{file}, err
}
