// A button that copies a text.
import { useState } from "preact/hooks";

export function Copy({ name, text }: { name: string; text: string }) {
  const [copied, setCopied] = useState(false);
  return (
    <button type="button" class="text" title={text} aria-label={"Copy as " + name} onClick={async () => {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    }}>{copied ? "Copied" : name}</button>
  );
}
