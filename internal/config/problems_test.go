package config

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the golden problems anew")

// TestProblems examines the files of each archive, as `deckle check` does, and
// compares what is printed with the archive's last file.
func TestProblems(t *testing.T) {
	folder, err := filepath.Abs("testdata/problems") // each case has a folder of its own
	if err != nil {
		t.Fatal(err)
	}
	archives, err := filepath.Glob(folder + "/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files := archive.Files
			want := ""
			if last := len(files) - 1; files[last].Name == "problems" {
				want, files = string(files[last].Data), files[:last]
			}
			got := examineArchive(t, files)
			if *update {
				archive.Files = append(files, txtar.File{Name: "problems", Data: []byte(got)})
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("problems (-want +got); go test -run TestProblems -update writes them anew:\n%s", diff)
			}
		})
	}
}

// examineArchive writes the files into a folder and returns what is said of them.
func examineArchive(t *testing.T, files []txtar.File) string {
	t.Helper()
	t.Chdir(t.TempDir())
	var paths []string
	for _, f := range files {
		if err := os.WriteFile(f.Name, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, f.Name)
	}
	problems := Examine(paths...)
	var out bytes.Buffer
	if _, err := problems.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
