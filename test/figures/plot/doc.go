// Package plot draws figures as SVG, in text that any browser shows, in colours for light and dark pages.
package plot
