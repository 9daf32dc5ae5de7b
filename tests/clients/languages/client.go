// go run client.go variable|address PROMPT: one answer whole and one streamed, printed as they came.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	base := os.Getenv("OPENAI_BASE_URL")
	if base == "" || os.Args[1] != "variable" {
		base = "https://api.openai.com/v1"
	}
	for _, stream := range []bool{false, true} {
		message := map[string]string{"role": "user", "content": os.Args[2]}
		asked, _ := json.Marshal(map[string]any{"model": "gpt-x", "stream": stream, "messages": []any{message}})
		answer, err := http.Post(base+"/chat/completions", "application/json", strings.NewReader(string(asked)))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		body, _ := io.ReadAll(answer.Body)
		fmt.Println(string(body))
		if answer.StatusCode != 200 {
			os.Exit(1)
		}
	}
}
