package edge

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"deckle/web"
)

// A Content-Security-Policy (CSP Level 3) decides which scripts run in a page. Ours
// are two inline runners, whose text is constant, and files of our own, whose elements
// the first runner makes. Where a policy does not let them run as it stands it is helped
// with what can switch nothing off that the site relies on: its own nonce on our
// elements, else hashes where inline scripts are not free anyway, and the files'
// exact URLs. Where that is not enough nothing goes in. Policies that only report are
// treated alike, so that nobody gets reports because of us.

const (
	cspEnforced = "Content-Security-Policy"
	cspReported = "Content-Security-Policy-Report-Only"
)

// trustedTypesName is the one policy that our scripts make (web/client).
const trustedTypesName = "deckle"

// needs are what a page with slots loads from us.
type needs struct {
	scripts []string // paths; none: a bot's page, which has no client
	images  bool     // of creatives
}

// needs are those of a visit's page.
func (v *visit) needs() needs {
	switch {
	case !v.client():
		return needs{}
	case v.hasMagazine():
		return needs{scripts: []string{web.ClientPath(), web.ReaderPath(), web.MagazinePath()}, images: true}
	}
	return needs{scripts: []string{web.ClientPath()}}
}

// An admission is how our scripts come to run under the policies of an answer.
type admission struct {
	needs
	nonce   string // goes on our script elements; "": none
	origin  string // of the page: scheme and host
	changed map[string][]string
}

// apply makes h say what lets our scripts run.
func (a *admission) apply(h http.Header) {
	for name, lines := range a.changed {
		h[name] = lines
	}
}

// admit finds out how our scripts come to run in a page of an origin under the
// policies of h; false: they cannot.
func admit(h http.Header, origin string, n needs) (admission, bool) {
	a := admission{needs: n, origin: origin}
	names := [...]string{cspEnforced, cspReported}
	var parsed [len(names)][][]policy // by header, line, and place in the line
	for i, name := range names {
		for _, line := range h[name] {
			parsed[i] = append(parsed[i], parsePolicies(line))
		}
	}
	a.nonce = firstNonce(slices.Concat(slices.Concat(parsed[:]...)...))
	for i, name := range names {
		lines, ok := a.admitLines(parsed[i], h[name], name == cspEnforced)
		if !ok {
			return admission{}, false
		}
		if lines != nil {
			if a.changed == nil {
				a.changed = map[string][]string{}
			}
			a.changed[name] = lines
		}
	}
	return a, true
}

// firstNonce is the first nonce among policies that need one.
func firstNonce(ps []policy) string {
	for i := range ps {
		if nonce := ps[i].nonceFor(slotsRunner(), bidsRunner()); nonce != "" {
			return nonce
		}
	}
	return ""
}

// admitLines helps the policies of a header, and returns its lines if one of them
// had to be changed.
func (a *admission) admitLines(lines [][]policy, texts []string, enforced bool) (changed []string, ok bool) {
	for i, line := range lines {
		help := false
		for j := range line {
			if enforced && !line[j].sandboxAllows() || !a.help(&line[j]) {
				return nil, false
			}
			help = help || line[j].changed
		}
		if help {
			if changed == nil {
				changed = slices.Clone(texts)
			}
			changed[i] = joinPolicies(line)
		}
	}
	return changed, true
}

// help adds to a policy what our scripts need; false: it forbids them whatever is
// added.
func (a *admission) help(p *policy) bool {
	if list := p.scripts(); list != nil {
		if list.none() {
			return false
		}
		var missing []string
		for _, r := range []runner{slotsRunner(), bidsRunner()} {
			if !list.allowsInline(r, a.nonce) {
				missing = append(missing, r.hash)
			}
		}
		for _, path := range a.scripts {
			if !list.allowsFile(a.origin+path, a.nonce) {
				missing = append(missing, a.origin+path)
			}
		}
		p.add(list, "script-src-elem", missing...)
	}
	if len(a.scripts) == 0 {
		return true
	}
	if types := p.find("trusted-types"); types != nil && !types.hasAny("*", trustedTypesName) {
		if types.none() {
			return false
		}
		p.add(types, types.name, trustedTypesName)
	}
	if list := p.find("connect-src", "default-src"); list != nil && !list.matches(a.origin+"/") {
		p.add(list, "connect-src", a.origin)
	}
	if list := p.find("img-src", "default-src"); a.images && list != nil && !list.matches(a.origin+web.Prefix+"x") {
		p.add(list, "img-src", a.origin+web.Prefix)
	}
	return true
}

// A runner is a constant inline script, and the source that lets exactly it run.
type runner struct{ text, hash string }

var (
	slotsRunner = sync.OnceValue(func() runner { return runner{web.SlotsRunner(), web.Hash(web.SlotsRunner())} })
	bidsRunner  = sync.OnceValue(func() runner { return runner{web.BidsRunner(), web.Hash(web.BidsRunner())} })
)

// admitMeta reports whether a runner runs that comes after the policies of metas,
// which nobody can help any more, and with which nonce. files says whether our files
// have to run as well.
func (a *admission) admitMeta(metas []string, r runner, files bool) (nonce string, ok bool) {
	nonce, files = a.nonce, files && len(a.scripts) > 0
	policies := make([]policy, len(metas))
	for i, text := range metas {
		policies[i] = parsePolicy(text)
		if nonce == "" {
			nonce = policies[i].nonceFor(r)
		}
	}
	for i := range policies {
		p := &policies[i]
		if list := p.scripts(); list != nil {
			if !list.allowsInline(r, nonce) || files && slices.ContainsFunc(a.scripts, func(path string) bool {
				return !list.allowsFile(a.origin+path, nonce)
			}) {
				return "", false
			}
		}
		if types := p.find("trusted-types"); files && types != nil && !types.hasAny("*", trustedTypesName) {
			return "", false
		}
	}
	return nonce, true
}

// A policy is one serialized policy, in its order.
type policy struct {
	directives []directive
	changed    bool
}

// A directive is a name, in lower case, and what stands behind it.
type directive struct {
	name    string
	sources []string
}

// parsePolicies reads a header line: policies with commas between them.
func parsePolicies(line string) (ps []policy) {
	for text := range strings.SplitSeq(line, ",") {
		ps = append(ps, parsePolicy(text))
	}
	return ps
}

func parsePolicy(text string) (p policy) {
	for d := range strings.SplitSeq(text, ";") {
		if fields := strings.FieldsFunc(d, isSpace); len(fields) > 0 {
			p.directives = append(p.directives, directive{strings.ToLower(fields[0]), fields[1:]})
		}
	}
	return p
}

// isSpace reports whether r is ASCII white space, the only one that parts sources.
func isSpace(r rune) bool { return strings.ContainsRune(" \t\n\f\r", r) }

func joinPolicies(ps []policy) string {
	texts := make([]string, len(ps))
	for i, p := range ps {
		var directives []string
		for _, d := range p.directives {
			directives = append(directives, strings.Join(append([]string{d.name}, d.sources...), " "))
		}
		texts[i] = strings.Join(directives, "; ")
	}
	return strings.Join(texts, ", ")
}

// find is the directive that governs: the first of the names that the policy has, and
// of those its first, since a browser ignores a repetition. Nil: there is none. It is
// valid until add.
func (p *policy) find(names ...string) *directive {
	for _, name := range names {
		if i := slices.IndexFunc(p.directives, func(d directive) bool { return d.name == name }); i >= 0 {
			return &p.directives[i]
		}
	}
	return nil
}

// scripts is the list that governs script elements.
func (p *policy) scripts() *directive { return p.find("script-src-elem", "script-src", "default-src") }

// add adds sources to the list that governs; where that is default-src, to a copy of
// it under the name that was missing, since default-src governs other things too.
func (p *policy) add(list *directive, name string, sources ...string) {
	sources = slices.DeleteFunc(slices.Clone(sources), list.has)
	if len(sources) == 0 {
		return
	}
	p.changed = true
	kept := list.sources
	if list.none() {
		kept = nil // 'none' means something only where it stands alone
	}
	all := slices.Concat(kept, sources)
	if list.name == "default-src" {
		p.directives = append(p.directives, directive{name, all})
		return
	}
	list.sources = all
}

// sandboxAllows reports whether a sandbox, if there is one, leaves the page its
// scripts and its origin.
func (p *policy) sandboxAllows() bool {
	d := p.find("sandbox")
	return d == nil || d.has("allow-scripts") && d.has("allow-same-origin")
}

// nonceFor is a nonce with which inline scripts run; "" if they all run without, or
// if there is none.
func (p *policy) nonceFor(runners ...runner) string {
	list := p.scripts()
	if list == nil || !slices.ContainsFunc(runners, func(r runner) bool { return !list.allowsInline(r, "") }) {
		return ""
	}
	for _, s := range list.sources {
		if nonce, ok := nonceOf(s); ok {
			return nonce
		}
	}
	return ""
}

// has reports whether a directive has a source. Keywords are the same in any case;
// nonces, hashes and the names of Trusted Types are not.
func (d *directive) has(source string) bool {
	return slices.ContainsFunc(d.sources, func(s string) bool {
		return s == source || isKeyword(source) && strings.EqualFold(s, source)
	})
}

func (d *directive) hasAny(sources ...string) bool { return slices.ContainsFunc(sources, d.has) }

func isKeyword(source string) bool {
	return strings.HasPrefix(source, "'") && !strings.HasPrefix(source, "'sha") && !strings.HasPrefix(source, "'nonce-") ||
		strings.HasPrefix(source, "allow-")
}

// none reports whether a list allows nothing at all.
func (d *directive) none() bool {
	return len(d.sources) == 0 || len(d.sources) == 1 && d.has("'none'")
}

// allowsInline reports whether a runner with a nonce runs (CSP Level 3 section 6.7.3).
func (d *directive) allowsInline(r runner, nonce string) bool {
	free := d.has("'unsafe-inline'") && !d.has("'strict-dynamic'")
	for _, s := range d.sources {
		own, isNonce := nonceOf(s)
		if isNonce && own == nonce {
			return true
		}
		free = free && !isNonce && !isHash(s)
	}
	return free || d.has(r.hash)
}

// allowsFile reports whether a script file runs whose element has a nonce and was made
// by a script that runs.
func (d *directive) allowsFile(own, nonce string) bool {
	return d.has("'strict-dynamic'") || nonce != "" && d.hasNonce(nonce) || d.matches(own)
}

func (d *directive) hasNonce(nonce string) bool {
	return slices.ContainsFunc(d.sources, func(s string) bool {
		own, ok := nonceOf(s)
		return ok && own == nonce
	})
}

// matches reports whether a source allows a URL of the page's own origin, as far as
// that is plain (CSP Level 3 section 6.7.2.8). A doubt is a no: what is then added is
// superfluous at worst.
func (d *directive) matches(own string) bool {
	u, err := url.Parse(own)
	return err == nil && slices.ContainsFunc(d.sources, func(s string) bool {
		switch strings.ToLower(s) {
		case "*", "'self'", u.Scheme + ":", "http:":
			return true
		}
		return matchesHost(s, u)
	})
}

func matchesHost(source string, u *url.URL) bool {
	scheme, rest, ok := strings.Cut(source, "://")
	if !ok {
		scheme, rest = u.Scheme, source
	}
	host, path, _ := strings.Cut(rest, "/")
	pattern, isWild := strings.CutPrefix(strings.ToLower(host), "*.")
	name := strings.ToLower(u.Host) // with a port that is not the scheme's own
	return strings.EqualFold(scheme, u.Scheme) &&
		(!isWild && pattern == name || isWild && strings.HasSuffix(name, "."+pattern)) &&
		(path == "" || "/"+path == u.Path || strings.HasSuffix(path, "/") && strings.HasPrefix(u.Path, "/"+path))
}

// maxNonce is far more than the characters of any nonce.
const maxNonce = 256

// nonceOf reads a nonce-source.
func nonceOf(source string) (nonce string, ok bool) {
	const prefix = "'nonce-"
	if len(source) <= len(prefix)+1 || len(source) > maxNonce || !strings.EqualFold(source[:len(prefix)], prefix) || source[len(source)-1] != '\'' {
		return "", false
	}
	nonce = source[len(prefix) : len(source)-1]
	return nonce, isBase64(nonce)
}

// isHash reports whether a source is a hash-source.
func isHash(source string) bool {
	lower := strings.ToLower(source)
	for _, algorithm := range []string{"'sha256-", "'sha384-", "'sha512-"} {
		if len(source) > len(algorithm)+1 && strings.HasPrefix(lower, algorithm) && source[len(source)-1] == '\'' {
			return isBase64(source[len(algorithm) : len(source)-1])
		}
	}
	return false
}

// isBase64 reports whether s is a base64-value of CSP: either alphabet.
func isBase64(s string) bool {
	text := strings.TrimRight(s, "=")
	return text != "" && len(s)-len(text) <= 2 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_") == ""
}
