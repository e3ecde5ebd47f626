package semantics

// mostShown is how many characters an error message repeats of a text from outside.
const mostShown = 80

// Beginning returns the first most characters of a text.
func Beginning(text string, most int) string {
	for i := range text {
		if most == 0 {
			return text[:i]
		}
		most--
	}
	return text
}

// Shorten returns the beginning of a text from outside for an error message, with "..." if there is more.
func Shorten(text string) string { return ShortenTo(text, mostShown) }

// ShortenTo is Shorten with another number of characters.
func ShortenTo(text string, most int) string {
	if beginning := Beginning(text, most); len(beginning) < len(text) {
		return beginning + "..."
	}
	return text
}
