package dashboard

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"deckle/internal/catalog"
	"deckle/internal/dashboard/access"
	"deckle/internal/dashboard/api"
)

// A visit is one request for a page.
type visit struct {
	w       http.ResponseWriter
	r       *http.Request
	session access.Session // empty on public pages
}

type handler func(visit) error

// maxForm bounds a form with pictures in it: twelve pages of a creative.
const maxForm = maxPages*catalog.MaxAssetBytes + 1<<20

// page serves a page that needs no session.
func (d *Dashboard) page(next handler) http.Handler {
	return d.answer(patient(next))
}

// private serves a page to those who have logged in, and shows the others where to
// do that.
func (d *Dashboard) private(next handler) http.Handler {
	return d.answer(func(v visit) error {
		session, ok := d.session(v.r)
		if !ok {
			return v.toLogIn()
		}
		v.session = session
		if v.r.Method == http.MethodPost {
			defer v.forgetFiles()
			if err := v.parseForm(); err != nil {
				return err
			}
		}
		return patient(next)(v)
	})
}

// answer makes a handler of net/http's, whose errors are pages as well.
func (d *Dashboard) answer(next handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		v := visit{w: w, r: r}
		if err := next(v); err != nil {
			d.fail(v, err)
		}
	})
}

// patient bounds what a page waits for, once the request has been read.
func patient(next handler) handler {
	return func(v visit) error {
		ctx, cancel := context.WithTimeout(v.r.Context(), patience)
		defer cancel()
		v.r = v.r.WithContext(ctx)
		return next(v)
	}
}

// secure lets a page load our stylesheet and pictures, and post to us. There is no
// script, so none can be smuggled in.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// parseForm reads what was posted, in bounded time and space.
func (v visit) parseForm() error {
	bound(v.w, time.Now().Add(formTime))
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	err := v.r.ParseForm() // by itself: ParseMultipartForm hides its error
	if err == nil {
		err = v.r.ParseMultipartForm(8 << 20) // in memory; the rest in files
	}
	if err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return unreadable(err)
	}
	bound(v.w, time.Time{}) // only now: net/http reads on after an error
	for name, values := range v.r.PostForm {
		if !utf8.ValidString(name) || slices.ContainsFunc(values, func(s string) bool { return !utf8.ValidString(s) }) {
			return badForm("It is not written in UTF-8, as our pages are.")
		}
	}
	return nil
}

// unreadable is the error of a form that is neither too large nor too slow.
func unreadable(err error) error {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return badForm("It is not written as forms are, or a part of it is missing.")
}

// forgetFiles removes what parseForm has put into files.
func (v visit) forgetFiles() {
	if v.r.MultipartForm != nil {
		_ = v.r.MultipartForm.RemoveAll() // they are temporary in any case
	}
}

// The cookies of a session. A __Host- cookie is Secure, of this host alone and of
// all its paths (RFC 6265bis section 4.1.3.2). Over plain http it is not kept by
// every browser, not even from this machine, where nobody can listen on the way:
// there a cookie of another name does, one that no https page would look at.
const (
	secureCookie = "__Host-deckle"
	localCookie  = "deckle-local"
)

// cookie is the name of the session cookie for how this request came, "" if it came
// over a network in plain text.
func (d *Dashboard) cookie(r *http.Request) (name string) {
	switch {
	case d.overTLS(r):
		return secureCookie
	case isLocal(r):
		return localCookie
	}
	return ""
}

func (d *Dashboard) overTLS(r *http.Request) bool {
	return r.TLS != nil || d.trusts(peer(r)) && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// isLocal reports whether a browser on this machine has sent r, or one at the other
// end of a tunnel. A proxy beside us has the same address and may ask by the same
// name, but passes on what came over a network.
func isLocal(r *http.Request) bool {
	return peer(r).IsLoopback() && isLoopback(r.Host) && !wasForwarded(r.Header)
}

// wasForwarded reports whether some proxy says that it has passed a request on.
func wasForwarded(h http.Header) bool {
	for name := range h {
		switch {
		case name == "Forwarded", name == "Via", name == "X-Real-Ip", strings.HasPrefix(name, "X-Forwarded-"):
			return true
		}
	}
	return false
}

// isLoopback reports whether a browser that asks for host talks to its own machine.
// What a name resolves to is not asked: rebinding a name to 127.0.0.1 is an attack.
func isLoopback(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.Trim(name, "[]")
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.IsLoopback() || name == "localhost" || strings.HasSuffix(name, ".localhost")
}

func peer(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.IPv4Unspecified()
	}
	return ap.Addr().Unmap()
}

func (d *Dashboard) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(d.config.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// from is where a request comes from: its peer, or what trusted proxies say of it.
func (d *Dashboard) from(r *http.Request) netip.Addr {
	addr := peer(r)
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !d.trusts(addr) {
			break
		}
		next, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		addr = next.Unmap()
	}
	return addr
}

func (d *Dashboard) session(r *http.Request) (access.Session, bool) {
	name := d.cookie(r)
	if name == "" {
		return access.Session{}, false
	}
	c, err := r.Cookie(name)
	if err != nil {
		return access.Session{}, false
	}
	return d.door.Session(c.Value)
}

// toLogIn leads to the log-in, and from there back to here.
func (v visit) toLogIn() error {
	target := "/login"
	if v.r.Method == http.MethodGet && v.r.URL.Path != "/" {
		target += "?next=" + url.QueryEscape(v.r.URL.RequestURI())
	}
	return v.redirect(target)
}

func (v visit) redirect(to string) error {
	http.Redirect(v.w, v.r, to, http.StatusSeeOther)
	return nil
}

// logInPage is the way in.
type logInPage struct {
	Title  string
	Name   string
	Next   string // where to go then
	Error  string
	Closed string // why nobody can log in; then there is no form
	Remedy string
}

func (d *Dashboard) showLogIn(v visit) error {
	if _, ok := d.session(v.r); ok {
		return v.redirect("/")
	}
	return d.renderLogIn(v, http.StatusOK, logInPage{Next: localPath(v.r.URL.Query().Get("next"))})
}

func (d *Dashboard) renderLogIn(v visit, status int, p logInPage) error {
	p.Title = "Log in"
	if err := d.door.Closed(); err != nil {
		p.Closed = "Nobody can log in: no password is set."
		p.Remedy = "Run `deckle admin password`, save what it prints to a file, and name that file in [admin].password_file of deckle.toml."
		if d.config.PasswordFile != "" {
			p.Closed = "Nobody can log in: the password file cannot be read."
			p.Remedy = "The log says what is wrong with it. `deckle admin password` makes another."
		}
		status = http.StatusServiceUnavailable
	} else if d.cookie(v.r) == "" {
		p.Closed = "Not over this connection: it is not encrypted, and everybody on the way could read the password."
		p.Remedy = "Open the dashboard through a tunnel (ssh -L 8081:127.0.0.1:8081 HOST, then http://localhost:8081), or put a proxy with TLS in front and list it in trusted_proxies."
		if wasForwarded(v.r.Header) {
			p.Closed = "Not through this proxy: nobody whom we trust says that your browser came to it by https."
			p.Remedy = "List the address of the proxy in trusted_proxies, and let it speak TLS with browsers and send X-Forwarded-Proto: https."
		}
		status = http.StatusForbidden
	}
	return render(v.w, status, "login", p)
}

// logIn opens a session for who knows the password.
func (d *Dashboard) logIn(v visit) error {
	cookie := d.cookie(v.r)
	if cookie == "" {
		return d.renderLogIn(v, http.StatusForbidden, logInPage{})
	}
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, 8<<10)
	if err := v.r.ParseForm(); err != nil {
		return unreadable(err)
	}
	bound(v.w, time.Time{})
	p := logInPage{Name: strings.TrimSpace(v.r.PostForm.Get("name")), Next: localPath(v.r.PostForm.Get("next"))}
	token, err := d.door.LogIn(v.r.Context(), d.from(v.r), p.Name, v.r.PostForm.Get("password"))
	switch tooMany, _ := errors.AsType[*access.TooMany](err); {
	case err == nil:
	case tooMany != nil:
		seconds := int((tooMany.RetryAfter + time.Second - 1) / time.Second)
		v.w.Header().Set("Retry-After", strconv.Itoa(seconds))
		p.Error = "Too many tries. The next one is possible in " + strconv.Itoa(seconds) + " seconds."
		return d.renderLogIn(v, http.StatusTooManyRequests, p)
	case errors.Is(err, access.ErrWrong):
		p.Error = "This is not the password, or the name has something else than letters, digits and ._@-"
		return d.renderLogIn(v, http.StatusForbidden, p)
	case errors.Is(err, access.ErrNoPassword):
		return d.renderLogIn(v, http.StatusServiceUnavailable, p)
	default:
		return err
	}
	http.SetCookie(v.w, &http.Cookie{
		Name: cookie, Value: token, Path: "/", HttpOnly: true, Secure: cookie == secureCookie,
		SameSite: http.SameSiteLaxMode, MaxAge: int(access.SessionAge / time.Second),
	})
	return v.redirect(p.Next)
}

// localPath is where to go after the log-in: a path of ours, whatever was asked.
func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(u.Path, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\t\r\n") {
		return "/"
	}
	return next
}

func (d *Dashboard) logOut(v visit) error {
	for _, name := range []string{secureCookie, localCookie} {
		if c, err := v.r.Cookie(name); err == nil {
			d.door.LogOut(c.Value)
			http.SetCookie(v.w, &http.Cookie{Name: name, Path: "/", HttpOnly: true, Secure: name == secureCookie, MaxAge: -1})
		}
	}
	return v.redirect("/login")
}

// denyCrossOrigin answers a form that another site has posted in somebody's name.
func (d *Dashboard) denyCrossOrigin(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, api.Prefix+"/") {
		api.Forbidden("cross-origin requests are not answered").ServeHTTP(w, r)
		return
	}
	d.page(func(visit) error {
		return failure{http.StatusForbidden, "That came from another site", "A page elsewhere has sent this request in your name. Nothing was changed."}
	}).ServeHTTP(w, r)
}
