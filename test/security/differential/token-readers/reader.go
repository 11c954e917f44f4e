// Reads requests from stdin, one line of JSON each; prints the refresh tokens that Go's libraries find in each.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
)

type wire struct{ Method, Query, ContentType, ContentEncoding, Body string }

type attributes struct {
	RefreshToken string `json:"refreshToken"`
	Snake        string `json:"refresh_token"`
	GrantType    string `json:"grant_type"`
}
type document struct {
	attributes
	Data struct {
		attributes
		Attributes attributes
	}
}

func (a attributes) tokens() []string {
	if a.GrantType != "" && a.GrantType != "refresh_token" {
		return nil
	}
	return []string{a.RefreshToken, a.Snake}
}

func fromForm(form url.Values) (out []string) {
	if grant := form.Get("grant_type"); grant != "" && grant != "refresh_token" {
		return nil
	}
	for name, values := range form {
		if strings.EqualFold(name, "refresh_token") || strings.EqualFold(name, "refreshToken") {
			out = append(out, values...)
		}
	}
	return out
}

func read(request wire) (out []string) {
	body, _ := base64.StdEncoding.DecodeString(request.Body)
	bodies := [][]byte{body}
	if reader, err := gzip.NewReader(bytes.NewReader(body)); err == nil {
		plain, _ := io.ReadAll(io.LimitReader(reader, 1<<20))
		bodies = append(bodies, plain)
	}
	for _, octets := range bodies {
		var one document
		if json.NewDecoder(bytes.NewReader(octets)).Decode(&one) == nil || true {
			out = append(out, one.tokens()...)
			out = append(out, one.Data.tokens()...)
			out = append(out, one.Data.Attributes.tokens()...)
		}
		for _, contentType := range []string{request.ContentType, "application/x-www-form-urlencoded"} {
			incoming := &http.Request{Method: "POST", URL: &url.URL{RawQuery: request.Query}, Header: http.Header{"Content-Type": {contentType}},
				Body: io.NopCloser(bytes.NewReader(octets))}
			incoming.ParseForm()
			out = append(out, fromForm(incoming.Form)...)
			out = append(out, fromForm(incoming.PostForm)...)
		}
	}
	return out
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var request wire
		json.Unmarshal(line, &request)
		tokens := []string{}
		for _, token := range read(request) {
			if token != "" {
				tokens = append(tokens, token)
			}
		}
		out.Encode(tokens)
	}
}
