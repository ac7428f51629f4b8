package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// stateDir creates the folder, or a temporary one if none is named, and returns its absolute path.
func stateDir(named string) (string, error) {
	if named == "" {
		return os.MkdirTemp("", "vnuma-lab-")
	}
	dir, err := filepath.Abs(named)
	if err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o700)
}

// readPassword reads the one password of all accounts, or generates a random one.
func readPassword(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err == nil {
		password := strings.TrimSpace(string(data))
		if password == "" {
			return "", fmt.Errorf("%s is empty: remove it, and a password is made", file)
		}
		return password, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	random := make([]byte, 18)
	if _, err := rand.Read(random); err != nil {
		return "", err
	}
	password := base64.RawURLEncoding.EncodeToString(random)
	return password, os.WriteFile(file, []byte(password+"\n"), 0o600)
}

// keepTemporaryFilesIn puts the datastore, which the simulator creates as a temporary folder, into the
// state folder, and removes what a killed lab left there.
func keepTemporaryFilesIn(dir string) error {
	temporary := filepath.Join(dir, "tmp")
	if err := os.RemoveAll(temporary); err != nil {
		return err
	}
	if err := os.MkdirAll(temporary, 0o700); err != nil {
		return err
	}
	return os.Setenv("TMPDIR", temporary)
}
