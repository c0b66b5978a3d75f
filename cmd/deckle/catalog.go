package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/term"

	"deckle/internal/catalog"
	"deckle/internal/dashboard/api"
)

// catalogCmd moves the catalog of a running server in and out, through its admin
// listener.
type catalogCmd struct {
	Import catalogImportCmd `cmd:"" help:"Show what a document would change in the catalog of a running server, then change it."`
	Export catalogExportCmd `cmd:"" help:"Write the catalog of a running server to a file."`
}

// A management is where a server is managed, and by which key.
type management struct {
	URL     string `name:"url" help:"The admin listener." default:"http://127.0.0.1:8081" env:"DECKLE_ADMIN_URL"`
	KeyFile string `name:"key-file" help:"A file with an API key; deckle admin key makes one." required:"" type:"path" env:"DECKLE_KEY_FILE"`
}

type catalogExportCmd struct {
	management
	File string `arg:"" help:"The file to write; - is standard output."`
}

// Run writes the catalog to the file, as a whole or not at all.
func (c *catalogExportCmd) Run(ctx context.Context, out io.Writer) error {
	document, _, err := c.send(ctx, http.MethodGet, "/document", nil, "")
	if err != nil {
		return fmt.Errorf("export the catalog: %w", err)
	}
	if c.File == "-" {
		_, err := out.Write(document)
		return err
	}
	if err := writeWhole(c.File, document); err != nil {
		return fmt.Errorf("export the catalog: %w", err)
	}
	return nil
}

// writeWhole replaces a file by way of another one, so that nobody finds half of
// it.
func writeWhole(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

type catalogImportCmd struct {
	management
	File string `arg:"" help:"A document as export writes it, or a part of one; - is standard input." type:"path"`
	Yes  bool   `help:"Do not ask."`
}

// Run shows what the document would change, asks, and has the server change just
// that. A document that is applied again changes nothing.
func (c *catalogImportCmd) Run(ctx context.Context, out io.Writer) error {
	document, err := c.document()
	if err != nil {
		return fmt.Errorf("read the document: %w", err)
	}
	diff, tag, err := c.diff(ctx, "/document/diff", document, "")
	if err != nil {
		return err
	}
	if len(diff.Steps) == 0 {
		_, err := fmt.Fprintln(out, "nothing to change")
		return err
	}
	if err := writeDiff(out, diff.Steps); err != nil {
		return err
	}
	if !c.Yes {
		if err := c.confirm(out, len(diff.Steps)); err != nil {
			return err
		}
	}
	diff, _, err = c.diff(ctx, "/document/apply", document, tag)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s made\n", count(diff.Done, "change"))
	return err
}

func (c *catalogImportCmd) document() ([]byte, error) {
	if c.File == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(c.File)
}

// confirm asks whether n changes are wanted. Where nobody can answer, they are not.
func (c *catalogImportCmd) confirm(out io.Writer, n int) error {
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return errors.New("nothing has been changed: say -yes where nobody can be asked")
	}
	fmt.Fprintf(out, "Make %s? [y/N] ", count(n, "change"))
	answer, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil && err != io.EOF {
		return fmt.Errorf("read the answer: %w", err)
	}
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return errors.New("nothing has been changed")
	}
	return nil
}

func (m *management) diff(ctx context.Context, path string, document []byte, match string) (api.Diff, string, error) {
	body, header, err := m.send(ctx, http.MethodPost, path, document, match)
	if err != nil {
		return api.Diff{}, "", err
	}
	var d api.Diff
	if err := json.Unmarshal(body, &d); err != nil {
		return api.Diff{}, "", fmt.Errorf("read the answer of the server: %w", err)
	}
	return d, header.Get("Etag"), nil
}

// writeDiff writes changes for people: a line for each entity, and one for each
// field of it.
func writeDiff(out io.Writer, steps []catalog.Step) error {
	w := bufio.NewWriter(out)
	for _, s := range steps {
		fmt.Fprintf(w, "%s %s\n", s.What, s.Key)
		for _, f := range s.Fields {
			switch {
			case f.From == "":
				fmt.Fprintf(w, "  %s: %s\n", f.Field, f.To)
			case f.To == "":
				fmt.Fprintf(w, "  %s: %s → nothing\n", f.Field, f.From)
			default:
				fmt.Fprintf(w, "  %s: %s → %s\n", f.Field, f.From, f.To)
			}
		}
	}
	return w.Flush() // the writer keeps the first error of those above
}

// manageTimeout is for the largest document; each of its writes waits for a disk.
const manageTimeout = 6 * time.Minute

// send asks the API, and returns its answer or what it says is wrong.
func (m *management) send(ctx context.Context, method, path string, body []byte, match string) ([]byte, http.Header, error) {
	target, err := m.target(path)
	if err != nil {
		return nil, nil, err
	}
	key, err := os.ReadFile(m.KeyFile)
	if err != nil {
		return nil, nil, fmt.Errorf("read the API key: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, manageTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, nil, fmt.Errorf("-url: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(key)))
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if match != "" {
		r.Header.Set("If-Match", match)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 4*catalog.MaxDocumentBytes))
	if err != nil {
		return nil, nil, fmt.Errorf("read the answer of the server: %w", err)
	}
	if resp.StatusCode >= 300 {
		return nil, nil, refused(resp, answer)
	}
	return answer, resp.Header, nil
}

// target is the address of a path of the API. A key is sent over a network by https
// only.
func (m *management) target(path string) (string, error) {
	u, err := url.Parse(m.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("-url %q is not an address like http://127.0.0.1:8081", m.URL)
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return "", fmt.Errorf("-url %s would send the API key unencrypted over a network: use https, or a tunnel to the admin listener", m.URL)
	}
	return u.JoinPath(api.Prefix, path).String(), nil
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// refused is what a server says is wrong, each thing on a line.
func refused(resp *http.Response, body []byte) error {
	var p api.Problem
	if err := json.Unmarshal(body, &p); err != nil || p.Status == 0 {
		return fmt.Errorf("the server at %s answers %s: is that the admin listener of deckle?", hostOf(resp), resp.Status)
	}
	var b strings.Builder
	switch p.Code {
	case "conflict":
		b.WriteString("the catalog was changed meanwhile; import the document again to see what it would change by now")
	default:
		fmt.Fprintf(&b, "the server refuses: %s", cmp.Or(p.Detail, p.Title))
	}
	for _, e := range p.Errors {
		fmt.Fprintf(&b, "\n  %s", e)
	}
	if after := resp.Header.Get("Retry-After"); after != "" {
		fmt.Fprintf(&b, "\n  try again in %s seconds", after)
	}
	return errors.New(b.String())
}

func hostOf(resp *http.Response) string {
	if resp.Request != nil {
		return resp.Request.URL.Host
	}
	return "the address"
}
