package htmlstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestBrowser has a browser judge the odd documents: what goes in is executed,
// once each, and when it has removed itself the tree is as without it.
// HTMLSTREAM_BROWSER is the path of a Chromium.
func TestBrowser(t *testing.T) {
	browser := os.Getenv("HTMLSTREAM_BROWSER")
	if browser == "" {
		t.Skip("HTMLSTREAM_BROWSER is not set")
	}
	var samples []sample
	for _, a := range oddDocuments(t) {
		for _, f := range a.Files {
			_, marked, _ := strings.Cut(strings.TrimSuffix(string(f.Data), "\n"), "\n")
			samples = append(samples, sampleOf(t, f.Name, sceneOf(f.Name, marked)))
		}
	}
	b, err := json.Marshal(samples) // escapes <, so that it may stand in a script
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	verdict := make(chan string, 1)
	// By HTTP: what a file loads is of another origin.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprintf(w, "<!doctype html><meta charset=utf-8><script>const samples=%s\n%s</script>", b, judgeScript)
			return
		}
		v, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		verdict <- string(v)
		cancel()
	}))
	defer server.Close()
	out, err := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
		"--user-data-dir="+t.TempDir(), "--remote-debugging-port=0", server.URL).CombinedOutput()
	select {
	case v := <-verdict:
		if want := fmt.Sprintf("judged %d", len(samples)); v != want {
			t.Errorf("the browser finds:\n%s\nwant %s", v, want)
		}
	default:
		t.Fatalf("%s: %v\n%s", browser, err, out)
	}
}

// A sample is a document without and with what goes in, for a browser.
type sample struct {
	Name, In, Out string // bytes as runes
	Points        []string
}

func sampleOf(t *testing.T, name string, s scene) sample {
	out, holes := play(t, s, nil)
	v := sample{Name: name, In: latin1(s.doc), Points: []string{}}
	for _, h := range holes {
		point := pointName(h.point)
		v.Points = append(v.Points, point)
		out = strings.Replace(out, filling(h.point), `<script type="application/json">{}</script>`+
			`<script>parent.ran.push("`+point+`");var s=document.currentScript;s.previousSibling.remove();s.remove()</script>`, 1)
	}
	v.Out = latin1(out)
	return v
}

// latin1 gives each byte as a rune, for JSON.
func latin1(s string) string {
	r := make([]rune, len(s))
	for i := range len(s) {
		r[i] = rune(s[i])
	}
	return string(r)
}

// judgeScript loads each sample in a frame, without and with what goes in.
const judgeScript = `
var ran = []; // the frames push what is executed
const load = (text, type) => new Promise(done => {
  const bytes = Uint8Array.from(text, c => c.charCodeAt(0));
  const frame = document.createElement('iframe');
  frame.src = URL.createObjectURL(new Blob([bytes], {type}));
  frame.onload = () => {
    const doc = frame.contentDocument;
    doc.normalize();
    done(dump(doc, ''));
    frame.remove();
  };
  document.documentElement.append(frame);
});
const dump = (n, indent) => {
  let s = '';
  for (const c of n.childNodes) {
    s += '\n' + indent + c.nodeName + ' ' + (c.namespaceURI || '') + JSON.stringify(c.nodeValue) +
      [...(c.attributes || [])].map(a => a.name + '=' + a.value) + dump(c, indent + ' ');
    if (c.nodeName === 'TEMPLATE') s += '\n' + indent + '#content' + dump(c.content, indent + ' ');
  }
  return s;
};
(async () => {
  let verdict = '';
  for (const {Name, In, Out, Points} of samples) {
    const type = Name.startsWith('charset/') ? 'text/html' : 'text/html;charset=utf-8';
    ran = [];
    const want = await load(In, type);
    ran = [];
    const got = await load(Out, type);
    if (String(ran) != String(Points)) verdict += Name + ': ran ' + ran + ', want ' + Points + '\n';
    if (got != want) verdict += Name + ': tree is' + got + '\nwant' + want + '\n';
  }
  await fetch('/', {method: 'POST', body: verdict + 'judged ' + samples.length});
})();
`
