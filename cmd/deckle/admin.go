package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"deckle/internal/dashboard/access"
)

// adminCmd makes what lets people and programs in.
type adminCmd struct {
	Password adminPasswordCmd `cmd:"" help:"Ask for a password, and print what [admin].password_file has to hold."`
	Key      adminKeyCmd      `cmd:"" help:"Make an API key, and print its line for [admin].api_keys_file."`
}

type adminPasswordCmd struct{}

// Run reads a password, twice and without echo from a terminal, or as one line from
// standard input, and prints its argon2id hash as a PHC string.
func (adminPasswordCmd) Run(out io.Writer) error {
	password, err := readPassword(os.Stdin, os.Stderr)
	if err != nil {
		return err
	}
	hash, err := access.HashPassword(password)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, hash)
	return err
}

func readPassword(in *os.File, prompt io.Writer) ([]byte, error) {
	fd := int(in.Fd())
	if !term.IsTerminal(fd) {
		return passwordLine(in)
	}
	ask := func(question string) ([]byte, error) {
		fmt.Fprint(prompt, question)
		password, err := term.ReadPassword(fd)
		fmt.Fprintln(prompt)
		if err != nil {
			return nil, fmt.Errorf("read the password: %w", err)
		}
		return password, nil
	}
	first, err := ask(fmt.Sprintf("Password (at least %d characters): ", access.MinPassword))
	if err != nil {
		return nil, err
	}
	second, err := ask("Again: ")
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(first, second) {
		return nil, errors.New("these were two different passwords")
	}
	return first, nil
}

// passwordLine reads the one line that standard input has.
func passwordLine(in io.Reader) ([]byte, error) {
	r := bufio.NewReader(io.LimitReader(in, 8<<10))
	line, err := r.ReadBytes('\n')
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("read the password: %w", err)
	}
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		return nil, errors.New("standard input has more than one line; the password is one")
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

type adminKeyCmd struct {
	Name string `arg:"" help:"Whose key it is, for the audit log: letters, digits, or ._@-"`
}

// Run prints the line for the file on standard output, so that it can be appended
// to that, and the key itself, which nothing keeps, on standard error.
func (c *adminKeyCmd) Run(out io.Writer) error {
	secret, line, err := access.NewKey(c.Name)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "The key, shown this once: %s\n", secret)
	_, err = fmt.Fprintln(out, line)
	return err
}
