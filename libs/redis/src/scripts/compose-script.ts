/**
 * Returns `body` with the parts of `prelude` that it needs before it. Other parts are left out, because Redis creates
 * every function at each call, used or not. A part is a statement of the prelude that begins in the first column with
 * `local`.
 */
export function composeScript(prelude: string, body: string): string {
  const parts = splitPrelude(prelude);
  const used = new Set<Part>();
  const toRead = [withoutComments(body)];
  for (let text = toRead.pop(); text !== undefined; text = toRead.pop()) {
    const words = new Set(text.match(/\w+/g));
    for (const part of parts) {
      if (used.has(part) || !part.names.some((name) => words.has(name))) continue;
      used.add(part);
      toRead.push(part.source);
    }
  }
  const sources = parts.filter((part) => used.has(part)).map((part) => part.source);
  return [...sources, body].join('\n');
}

interface Part {
  names: string[];
  source: string;
}

function splitPrelude(prelude: string): Part[] {
  const statements = withoutComments(prelude).split(/^(?=local )/m);
  return statements
    .filter((text) => text.startsWith('local '))
    .map((source) => ({ names: namesOf(source), source: source.trimEnd() }));
}

/** Returns the names that a part declares: f for `local function f(…)`, a and b for `local a, b = …`. */
function namesOf(source: string): string[] {
  const name = /^local function (\w+)/.exec(source)?.[1];
  if (name !== undefined) return [name];
  return /^local ([\w, ]+?) *(=|$)/m.exec(source)?.[1]?.split(/, */) ?? [];
}

function withoutComments(lua: string): string {
  return lua.replace(/^ *--.*\n/gm, '');
}
