package dashboard

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"deckle"
	"deckle/internal/catalog"
	"deckle/internal/store"
)

//go:embed page static
var files embed.FS

// templates are the pages by name, each with the frame and the parts around it.
var templates = sync.OnceValue(parsePages)

// versioned is the address of a static file; its query is its content.
func versioned(path string) string {
	sum := sha256.Sum256([]byte(mustRead(path)))
	return "/" + path + "?" + hex.EncodeToString(sum[:6])
}

func parsePages() map[string]*template.Template {
	css, script := versioned("static/deckle.css"), versioned("static/editor.js")
	shared := template.Must(template.New("").Funcs(template.FuncMap{
		"stylesheet":    func() string { return css },
		"editorScript":  func() string { return script },
		"date":          func(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04") + " UTC" },
		"iso":           func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"budgetHead":    func() []string { return budgetHead },
		"contenderHead": func() []string { return contenderHead },
	}).ParseFS(files, "page/parts/*.html"))
	names, err := fs.Glob(files, "page/*.html")
	if err != nil {
		panic(fmt.Sprintf("dashboard: %v", err))
	}
	pages := map[string]*template.Template{}
	for _, name := range names {
		key := strings.TrimSuffix(strings.TrimPrefix(name, "page/"), ".html")
		pages[key] = template.Must(template.Must(shared.Clone()).ParseFS(files, name))
	}
	return pages
}

// render answers with a page. It is made as a whole first: half a page with status
// 200 is worse than an error.
func render(w http.ResponseWriter, status int, page string, data any) error {
	var b bytes.Buffer
	if err := templates()[page].ExecuteTemplate(&b, page, data); err != nil {
		return fmt.Errorf("render %s: %w", page, err)
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // an error says that the browser has gone
	return nil
}

func static() http.Handler {
	files := http.FileServerFS(files)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		if strings.HasSuffix(r.URL.Path, "/") { // no listings
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		files.ServeHTTP(w, r)
	})
}

// A frame is what every page of a session has around it.
type frame struct {
	Title string
	Crumb link // where this page belongs; may be empty
	Nav   []navItem
	Who   string
	Flash string // what has just been done
}

type link struct{ Href, Text string }

type navItem struct {
	link
	Current bool
	Apart   bool // a space before it
	Count   int  // of what waits there
}

// frame is that of a page in a section of the navigation.
func (d *Dashboard) frame(v visit, title, section string) frame {
	f := frame{Title: title, Who: v.session.Name, Flash: flash(v.r.URL.Query().Get("done"))}
	waiting := len(d.catalog.Snapshot().Queue("", time.Now()))
	for _, n := range []navItem{
		{link: link{"/", "Overview"}},
		{link: link{"/inbox", "Approvals"}, Count: waiting},
		{link: link{"/reports", "Reports"}, Apart: true},
		{link: link{"/budgets", "Budgets"}},
		{link: link{"/why", "Why this ad"}},
		{link: link{"/publishers", "Publishers"}, Apart: true},
		{link: link{"/sites", "Sites"}},
		{link: link{"/advertisers", "Advertisers"}, Apart: true},
		{link: link{"/campaigns", "Campaigns"}},
		{link: link{"/creatives", "Creatives"}},
		{link: link{"/audit", "Audit log"}, Apart: true},
	} {
		n.Current = n.Href == section
		f.Nav = append(f.Nav, n)
	}
	return f
}

// flash is what a redirect can say that was done, by the word in its URL.
func flash(done string) string {
	switch done {
	case "created":
		return "Created."
	case "saved":
		return "Saved."
	case "corrected":
		return "Saved. Colours that could not be read on their background have become black or white; the fields show which."
	case "kept":
		return "Draft kept. Nobody but people here sees it before it is published."
	case "read":
		return "This is what the page says of itself. Look through it, then publish it; it is kept as a draft."
	case "dropped":
		return "The draft has been thrown away."
	case "deleted":
		return "Deleted. A tombstone keeps its id."
	case "approved":
		return "Approved."
	case "rejected":
		return "Rejected."
	case "rotated":
		return "The next tokens are signed with a new key."
	case "decided":
		return "Nothing was changed: somebody had decided about that meanwhile."
	}
	return ""
}

// A failure is a page that says why there is no other.
type failure struct {
	status int
	title  string
	text   string
}

func (f failure) Error() string { return f.title }

func nothingHere() failure {
	return failure{http.StatusNotFound, "There is nothing here", "The page does not exist, or what it showed has been deleted."}
}

func notFound(visit) error { return nothingHere() }

// failurePage is the page of a failure.
type failurePage struct {
	Title  string
	Status int
	Text   string
}

// fail is the only place where an error becomes a page.
func (d *Dashboard) fail(v visit, err error) {
	f := failureOf(err)
	if f.status == http.StatusInternalServerError {
		d.log.ErrorContext(v.r.Context(), "dashboard", "err", fmt.Errorf("%s %s: %w", v.r.Method, v.r.URL.Path, err))
	}
	v.w.Header().Set("Cache-Control", "no-store")
	if f.status == http.StatusServiceUnavailable {
		v.w.Header().Set("Retry-After", "2")
	}
	if err := render(v.w, f.status, "failure", failurePage{Title: f.title, Status: f.status, Text: f.text}); err != nil {
		d.log.ErrorContext(v.r.Context(), "dashboard", "err", err)
		http.Error(v.w, f.title, f.status)
	}
}

func failureOf(err error) failure {
	if f, ok := errors.AsType[failure](err); ok {
		return f
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return failure{http.StatusRequestEntityTooLarge, "That is too large", "A form takes 64 MB at most, and a picture 5."}
	}
	if e, ok := errors.AsType[*catalog.InvalidError](err); ok {
		return failure{http.StatusBadRequest, "That cannot be done", e.Error()}
	}
	if e, ok := errors.AsType[*catalog.ConflictError](err); ok {
		return failure{http.StatusConflict, "Somebody was faster", e.Error() + ". Go back, reload, and decide again."}
	}
	switch {
	case errors.Is(err, catalog.ErrNotFound), errors.Is(err, store.ErrNotFound):
		return nothingHere()
	case errors.Is(err, catalog.ErrNotLoaded):
		return failure{http.StatusServiceUnavailable, "One moment", "This node has not read the catalog yet. Reload the page in a few seconds."}
	case errors.Is(err, store.ErrFull):
		return failure{http.StatusServiceUnavailable, "The store is full", "Nothing was written. Give it more space, then try again."}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return failure{http.StatusRequestTimeout, "That came too slowly", "Nothing was changed. Go back, and send it again."}
	case unavailable(err):
		return failure{http.StatusServiceUnavailable, "The store does not answer", "What you sent may or may not have been saved. Go back in a moment, reload, and look."}
	}
	if v, ok := errors.AsType[badForm](err); ok {
		return failure{http.StatusBadRequest, "That form cannot be read", string(v)}
	}
	return failure{http.StatusInternalServerError, "That is our error", "The log has what went wrong."}
}

// badForm is posted data that none of our pages sends.
type badForm string

func (b badForm) Error() string { return string(b) }

// amount writes micros as people do: "2,500.00 USD", "2,500 JPY".
func amount(micros int64, currency string) string {
	text := strings.TrimSpace(deckle.CPM(micros).String())
	whole, fraction, _ := strings.Cut(text, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if !hasNoMinorUnit(currency) {
		fraction += strings.Repeat("0", max(0, 2-len(fraction)))
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return strings.TrimSpace(sign + whole + " " + currency)
}

// hasNoMinorUnit reports whether prices in a currency are written without decimals.
func hasNoMinorUnit(currency string) bool {
	return slices.Contains([]string{"CLP", "ISK", "JPY", "KRW", "PYG", "UGX", "VND", "XAF", "XOF", "XPF"}, currency)
}
