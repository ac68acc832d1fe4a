/** Text that is HTML already. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = string | number | Html | undefined | readonly Part[];

/** Returns HTML in which every value is escaped, apart from those that are HTML. Undefined is nothing. */
export function html(parts: TemplateStringsArray, ...values: Part[]): Html {
  return new Html(parts.map((part, index) => (index === 0 ? part : `${toText(values[index - 1])}${part}`)).join(''));
}

function toText(value: Part): string {
  if (value === undefined) return '';
  if (value instanceof Html) return value.text;
  return typeof value === 'object' ? value.map(toText).join('') : escapeHtml(String(value));
}

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

const escapeHtml = (text: string) => text.replaceAll(/[&<>"']/g, (character) => ESCAPES[character] ?? '');

/** Returns JSON that cannot end the script element in which it is. */
export const toScriptJson = (value: unknown) => new Html(JSON.stringify(value).replaceAll('<', '\\u003c'));
