// JSON whose numbers stay as they were written: 12345678901234567890 and 1.50 are not what they are as numbers of the browser.

interface RawJSON {
  rawJSON?: (text: string) => unknown;
  isRawJSON?: (value: unknown) => boolean;
}
const { rawJSON, isRawJSON } = JSON as RawJSON;

/** parse parses JSON. JSON.stringify writes the numbers of the result as they were, in browsers that can (since 2025 all). */
export function parse(text: string): unknown {
  return JSON.parse(text, ((_key: string, value: unknown, context?: { source?: string }) => {
    const source = context?.source;
    return typeof value === "number" && source !== undefined && rawJSON && String(value) !== source ? rawJSON(source) : value;
  }) as (key: string, value: unknown) => unknown);
}

/** isNumber reports whether a parsed value is a number. */
export function isNumber(value: unknown): boolean {
  return typeof value === "number" || (isRawJSON?.(value) ?? false);
}
