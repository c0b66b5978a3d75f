// Command build makes the browser files in dist/ from the TypeScript in client/,
// with esbuild as a library, so that nobody needs Node for it. Its output is
// committed; with -check it writes nothing and fails where dist/ is not what the
// sources give.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	dir := flag.String("dir", "web", "the directory that holds client/ and dist/")
	check := flag.Bool("check", false, "write nothing; fail where dist/ is not current")
	flag.Parse()
	if err := run(*dir, *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run builds what dir holds, and brings its dist/ up to date or compares it.
func run(dir string, check bool) error {
	want, err := build(filepath.Join(dir, "client"))
	if err != nil {
		return err
	}
	dist := filepath.Join(dir, "dist")
	if check {
		return compare(dist, want)
	}
	return write(dist, want)
}

// build bundles the entry points in src. It returns the files of dist/ by name.
// What is loaded is named by its content, so that it can be cached for ever; the
// runners are inlined into pages and need no such name.
func build(src string) (map[string][]byte, error) {
	files := make(map[string][]byte)
	for _, runner := range []string{"slots-runner", "bids-runner"} {
		code, err := bundle(filepath.Join(src, runner+".ts"), api.ES2017, nil)
		if err != nil {
			return nil, err
		}
		files[runner+".js"] = code
	}
	// The reader's script loads the magazine's, and so has its name in it.
	var magazine string
	for _, e := range []struct {
		name, entry string
		target      api.Target
	}{
		{"client", "main.ts", api.ES2017},
		// A browser that knows container queries knows ES2020.
		{"magazine", "magazine/main.ts", api.ES2020},
		{"reader", "reader/main.ts", api.ES2020},
	} {
		code, err := bundle(filepath.Join(src, e.entry), e.target, map[string]string{"MAGAZINE_PATH": strconv.Quote(magazine)})
		if err != nil {
			return nil, err
		}
		name := e.name + "-" + hash(code) + ".js"
		files[name] = code
		if e.name == "magazine" {
			magazine = "/_deckle/" + name
		}
	}
	return files, nil
}

// bundle gives the script that entry and its imports make, with constants put in
// where define names them: ASCII, minified, safe to stand in an HTML script
// element, in the syntax of target.
func bundle(entry string, target api.Target, define map[string]string) ([]byte, error) {
	result := api.Build(api.BuildOptions{
		EntryPoints:       []string{entry},
		Bundle:            true,
		Format:            api.FormatIIFE,
		Target:            target,
		Charset:           api.CharsetASCII,
		LegalComments:     api.LegalCommentsNone,
		MinifyWhitespace:  true,
		MinifyIdentifiers: true,
		MinifySyntax:      true,
		Define:            define,
		Plugins:           []api.Plugin{{Name: "css", Setup: styleSheets}},
		LogLevel:          api.LogLevelSilent,
	})
	if err := joined(result.Errors); err != nil {
		return nil, fmt.Errorf("bundle %s: %w", entry, err)
	}
	return bytes.TrimSpace(result.OutputFiles[0].Contents), nil
}

// styleSheets makes an imported style sheet a string: its text, minified, as the
// browsers understand it that have container queries.
func styleSheets(build api.PluginBuild) {
	build.OnLoad(api.OnLoadOptions{Filter: `\.css$`}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
		source, err := os.ReadFile(args.Path)
		if err != nil {
			return api.OnLoadResult{}, err
		}
		style := api.Transform(string(source), api.TransformOptions{
			Loader: api.LoaderCSS,
			Engines: []api.Engine{
				{Name: api.EngineChrome, Version: "105"},
				{Name: api.EngineFirefox, Version: "110"},
				{Name: api.EngineSafari, Version: "16"},
			},
			Charset:          api.CharsetASCII,
			MinifyWhitespace: true,
			MinifySyntax:     true,
			LogLevel:         api.LogLevelSilent,
		})
		if err := joined(append(style.Errors, style.Warnings...)); err != nil {
			return api.OnLoadResult{}, err
		}
		text := strings.TrimSpace(string(style.Code))
		return api.OnLoadResult{Contents: &text, Loader: api.LoaderText}, nil
	})
}

// joined is esbuild's messages as one error, nil where there are none.
func joined(messages []api.Message) error {
	var errs []error
	for _, text := range api.FormatMessages(messages, api.FormatMessagesOptions{}) {
		errs = append(errs, errors.New(text))
	}
	return errors.Join(errs...)
}

// hash is short enough for a name and long enough that no two builds share it.
func hash(code []byte) string {
	sum := sha256.Sum256(code)
	return hex.EncodeToString(sum[:8])
}

// write makes dist hold exactly want. Files stay as they are where they are right.
func write(dist string, want map[string][]byte) error {
	if err := os.MkdirAll(dist, 0o755); err != nil {
		return err
	}
	for name, code := range want {
		if err := os.WriteFile(filepath.Join(dist, name), code, 0o644); err != nil {
			return err
		}
	}
	have, err := read(dist)
	if err != nil {
		return err
	}
	for name := range have {
		if _, ok := want[name]; !ok {
			if err := os.Remove(filepath.Join(dist, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare says how dist differs from want.
func compare(dist string, want map[string][]byte) error {
	have, err := read(dist)
	if err != nil {
		return err
	}
	var stale []string
	for name, code := range want {
		if got, ok := have[name]; !ok || !bytes.Equal(got, code) {
			stale = append(stale, name)
		}
	}
	for name := range have {
		if _, ok := want[name]; !ok {
			stale = append(stale, name)
		}
	}
	if len(stale) == 0 {
		return nil
	}
	slices.Sort(stale)
	return fmt.Errorf("%s is not what client/ gives: %v; run: go run ./web/build", dist, stale)
}

// read gives the files of a directory by name. A directory that is not there is empty.
func read(dir string) (map[string][]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	files := make(map[string][]byte)
	for _, entry := range entries {
		code, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		files[entry.Name()] = code
	}
	return files, nil
}
