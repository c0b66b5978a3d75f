// Package landing reads an advertiser's landing page and says what a magazine of it
// can begin with: its own texts, pictures and colours, and nothing else.
//
// Whoever names the page makes this machine send a request, and what comes back is a
// stranger's: requests go to public addresses only, also after redirects, and all that
// is read is bounded in size and time.
package landing

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/html/charset"

	"deckle/internal/publicnet"
)

// Bounds of what is fetched.
const (
	MaxPageBytes    = 2 << 20 // what comes after is not read
	MaxPictureBytes = 5 << 20
	maxRedirects    = 5
	maxURL          = 2048
	pageTime        = 5 * time.Second // redirects included
	pictureTime     = 3 * time.Second
	maxHeader       = 64 << 10
)

// A Problem is why a page or a picture cannot be had, in words for who has named it.
// Of an address that is not public it says nothing else, so that nobody learns from it
// what there is behind our walls.
type Problem string

func (p Problem) Error() string { return string(p) }

// The problems that are not about one answer.
const (
	NoURL        Problem = "This is not the address of a web page: write it as https://example.com/page."
	NotPublic    Problem = "This address is not on the public internet. Only pages that everybody can open are read."
	Unreachable  Problem = "Nobody answers at this address."
	NotTrusted   Problem = "The certificate of this address is not to be trusted."
	TooSlow      Problem = "The page does not come in time."
	Redirects    Problem = "The page redirects too often, or to something that is no web page."
	NotHTML      Problem = "What is at this address is not a web page: it has to be text/html."
	NotAPicture  Problem = "What is at this address is not a picture, or it is too large."
	NothingThere Problem = "The page has no title and no text that could be read. Pages that are made by script alone are empty to us."
)

// Config configures a [Reader]. The zero value is ready to use.
type Config struct {
	// Allow are networks that may be asked although they are not public, on every port:
	// of a test, or of a staging server. Whoever may log in reads what is there.
	Allow []netip.Prefix

	// Resolver finds addresses of names. Defaults to the system's.
	Resolver *net.Resolver
}

// A Reader reads pages. Its methods may be called concurrently.
type Reader struct {
	client *http.Client
}

// New makes a reader.
func New(c Config) *Reader {
	dialer := &net.Dialer{Timeout: pageTime, Resolver: c.Resolver, Control: c.control}
	return &Reader{client: &http.Client{
		Transport: &http.Transport{ // no Proxy: it would resolve names past the dialer
			DialContext:            dialer.DialContext,
			DisableKeepAlives:      true, // a few requests in a day
			TLSHandshakeTimeout:    pageTime,
			MaxResponseHeaderBytes: maxHeader,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if _, err := parseURL(r.URL.String()); err != nil || len(via) > maxRedirects {
				return Redirects
			}
			r.Header.Del("Referer")
			return nil
		},
	}}
}

// control stands where a socket is about to be connected, after the name has been
// resolved and for every redirect. On the public internet only the ports of the web
// are asked: nobody scans others through us.
func (c Config) control(_, address string, _ syscall.RawConn) error {
	if err := publicnet.Permit(address, c.Allow); err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(address)
	if publicnet.Permit(address, nil) == nil && port != "80" && port != "443" {
		return fmt.Errorf("%s: %w", address, publicnet.ErrNotPublic)
	}
	return nil
}

// parseURL reads an address that may be asked.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxURL || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.Opaque != "" {
		return nil, NoURL
	}
	return u, nil
}

// Read reads the page at an address; one without a scheme is tried by https. Its error
// is a [Problem], or that of ctx.
func (r *Reader) Read(ctx context.Context, address string) (*Page, error) {
	address = strings.TrimSpace(address)
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	u, err := parseURL(address)
	if err != nil {
		return nil, err
	}
	fetch, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	resp, err := r.get(fetch, u.String(), "text/html")
	if err != nil {
		return nil, explain(ctx, err)
	}
	defer resp.Body.Close()
	if !is(resp, "text/html") {
		return nil, NotHTML
	}
	body, err := charset.NewReader(io.LimitReader(resp.Body, MaxPageBytes), resp.Header.Get("Content-Type"))
	if err != nil {
		return nil, explain(ctx, err)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, explain(ctx, err)
	}
	page := parse(text, resp.Request.URL)
	if page.Title == "" && len(page.Sections) == 0 {
		return nil, NothingThere
	}
	return page, nil
}

// Picture reads a picture of a page: at most [MaxPictureBytes], of which nothing has
// been looked at. Its error is a [Problem], or that of ctx.
func (r *Reader) Picture(ctx context.Context, address string) ([]byte, error) {
	u, err := parseURL(address)
	if err != nil {
		return nil, err
	}
	fetch, cancel := context.WithTimeout(ctx, pictureTime)
	defer cancel()
	resp, err := r.get(fetch, u.String(), "image/*")
	if err != nil {
		return nil, explain(ctx, err)
	}
	defer resp.Body.Close()
	if resp.ContentLength > MaxPictureBytes {
		return nil, NotAPicture
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, MaxPictureBytes+1))
	switch {
	case err != nil:
		return nil, explain(ctx, err)
	case len(data) > MaxPictureBytes:
		return nil, NotAPicture
	}
	return data, nil
}

// get asks for something, and gives the answer if it is a 200.
func (r *Reader) get(ctx context.Context, address, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, NoURL
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("User-Agent", "Deckle/1 (reads a landing page for its advertiser)")
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close() // nothing of it is read
		return nil, Problem(fmt.Sprintf("The page answers with status %d.", resp.StatusCode))
	}
	return resp, nil
}

func is(resp *http.Response, mediaType string) bool {
	got, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && got == mediaType
}

// explain makes what went wrong a problem. The words of the network stay with us: they
// have addresses in them.
func explain(ctx context.Context, err error) error {
	problem, ours := errors.AsType[Problem](err)
	_, badCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case ours:
		return problem
	case errors.Is(err, publicnet.ErrNotPublic):
		return NotPublic
	case isTimeout(err):
		return TooSlow
	case badCertificate:
		return NotTrusted
	}
	return Unreachable
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return errors.Is(err, context.DeadlineExceeded) || ok && timeout.Timeout()
}

// resolve is an address of a page as it is from outside; "" for one that nobody can ask.
func resolve(base *url.URL, ref string) string {
	u, err := base.Parse(strings.TrimSpace(ref))
	if err != nil || ref == "" {
		return ""
	}
	u.Fragment = ""
	if _, err := parseURL(u.String()); err != nil {
		return ""
	}
	return u.String()
}
