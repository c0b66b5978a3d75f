package template

import "strings"

// Normalize turns the target of a request line into the path that patterns are
// matched against: query and fragment cut off, percent-decoded once, and then
// its dot segments resolved as in RFC 3986 section 5.2.4. Decoding comes first,
// so "%2e" is a dot and "%2F" a slash; "%252e" becomes the text "%2e" and stays
// that. A "%" without two hexadecimal digits is kept as it is, empty segments
// are kept ("//"), and bytes that are not UTF-8 are kept too.
//
// The absolute form ("http://host/path", RFC 9112 section 3.2.2) is cut to its
// path. A target without a path ("*", "host:443") is returned as it is; no
// pattern matches it.
//
// The result shares memory with target where nothing had to be decoded or
// resolved, and nothing is allocated then.
func Normalize(target string) string {
	if !strings.HasPrefix(target, "/") {
		path, ok := absolutePath(target)
		if !ok {
			return target
		}
		target = path
	}
	if i := strings.IndexAny(target, "?#"); i >= 0 {
		target = target[:i]
	}
	if isNormal(target) {
		return target
	}
	b := decode(make([]byte, 0, len(target)), target)
	return string(resolveDots(b))
}

// absolutePath cuts scheme and authority from an absolute-form target.
func absolutePath(target string) (path string, ok bool) {
	scheme, rest, ok := strings.Cut(target, "://")
	if !ok || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return "", false
	}
	i := strings.IndexAny(rest, "/?#")
	if i < 0 || rest[i] != '/' {
		return "/", true // RFC 9110 section 4.2.3: an empty path is "/"
	}
	return rest[i:], true
}

// isNormal reports whether path has neither a percent escape nor a dot segment.
func isNormal(path string) bool {
	for i := 0; i < len(path); i++ {
		switch path[i] {
		case '%':
			if _, ok := escape(path[i:]); ok {
				return false
			}
		case '/':
			if isDots(path[i+1:]) {
				return false
			}
		}
	}
	return true
}

// isDots reports whether the segment that path begins with is "." or "..".
func isDots(path string) bool {
	n := 0
	for n < len(path) && n < 3 && path[n] == '.' {
		n++
	}
	return (n == 1 || n == 2) && (n == len(path) || path[n] == '/')
}

// decode appends s to b with its percent escapes decoded.
func decode(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if v, ok := escape(s[i:]); ok {
			c, i = v, i+2
		}
		b = append(b, c)
	}
	return b
}

// escape reads the percent escape that s begins with.
func escape(s string) (c byte, ok bool) {
	if len(s) < 3 || s[0] != '%' {
		return 0, false
	}
	hi, ok1 := unhex(s[1])
	lo, ok2 := unhex(s[2])
	return hi<<4 | lo, ok1 && ok2
}

func unhex(c byte) (v byte, ok bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// resolveDots removes the dot segments of b, which begins with "/", in place.
// What ".." takes away is exactly one segment, an empty one too, and never the
// first slash.
func resolveDots(b []byte) []byte {
	out := b[:0]
	for i := 0; i < len(b); {
		end := i + 1 // b[i] is the slash before a segment
		for end < len(b) && b[end] != '/' {
			end++
		}
		segment := b[i+1 : end]
		dots := string(segment) == "." || string(segment) == ".."
		if string(segment) == ".." {
			for len(out) > 0 && out[len(out)-1] != '/' {
				out = out[:len(out)-1]
			}
			out = out[:max(len(out)-1, 0)]
		}
		switch {
		case !dots:
			out = append(out, b[i:end]...)
		case end == len(b):
			out = append(out, '/') // "/a/." and "/b/.." name directories
		}
		i = end
	}
	return out
}
