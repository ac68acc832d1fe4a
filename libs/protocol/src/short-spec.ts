import { toCanonicalJson } from './canonical-json.ts';
import { type ResolvedSessionSpec, sessionSpecSchema } from './session.ts';

// Redis keeps the spec of every session. Most fields of most specs have their defaults, so those are left out.
// SHORT-1. Parsing the short spec returns the same spec, in every version that has the same SCHEMA_VERSION. So a change
//          of a default raises that version.

/** Fields that a client reads without parsing the spec. */
const ALWAYS: ReadonlySet<string> = new Set(['commandTimeoutMs', 'output'] satisfies (keyof ResolvedSessionSpec)[]);

let usual: Map<string, string> | undefined;

/** Returns the canonical JSON of a spec without fields that have their defaults. */
export function toShortSpec(spec: ResolvedSessionSpec): string {
  usual ??= new Map(Object.entries(sessionSpecSchema.parse({})).map(([name, value]) => [name, toCanonicalJson(value)]));
  const defaults = usual;
  const kept = Object.entries(spec).filter(
    ([name, value]) => ALWAYS.has(name) || value === undefined || toCanonicalJson(value) !== defaults.get(name),
  );
  const short = Object.fromEntries(kept);
  const canonical = toCanonicalJson(spec);
  // Some defaults depend on other fields.
  const parsed = sessionSpecSchema.safeParse(short).data;
  return parsed !== undefined && toCanonicalJson(parsed) === canonical ? toCanonicalJson(short) : canonical;
}
