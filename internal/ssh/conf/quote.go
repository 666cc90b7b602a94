package conf

import "strings"

// Quote writes a word for ssh_config: quoted only where necessary (misc.c, argv_split). No word can
// hold a newline there; it becomes a blank.
func Quote(word string) string {
	word = strings.NewReplacer("\n", " ", "\r", " ").Replace(word)
	if word != "" && !strings.ContainsAny(word, " \t'\"#=\\") {
		return word
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}
