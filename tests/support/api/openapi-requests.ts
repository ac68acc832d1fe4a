import fc, { type Arbitrary } from 'fast-check';
import { type JsonSchema, JsonValues, odd } from './json-values.ts';

interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required: boolean;
  schema: JsonSchema;
}

interface Media {
  schema?: JsonSchema;
}

/** One operation of an OpenAPI document. */
export interface Operation {
  operationId: string;
  parameters?: Parameter[];
  requestBody?: { required: boolean; content: Record<string, Media> };
  responses: Record<string, { content?: Record<string, Media> }>;
}

export interface ApiDocument {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, JsonSchema> };
}

export interface ApiRequest {
  method: string;
  /** Path and query, as they are sent. */
  path: string;
  headers: Record<string, string>;
  body: string | undefined;
}

/** Values that tests prefer for parts of paths, by the first part of the path below `/v1`. */
export type KnownIds = Readonly<Record<string, readonly string[]>>;

type Parts = Partial<Record<string, string>>;

/**
 * Generates requests for an operation. Half of them are as the document says, with bounds. The others have an unknown
 * part, a part of a wrong type, a text that cannot be decoded, or a body that is no JSON.
 */
export function requestsFor(
  document: ApiDocument,
  place: { method: string; path: string; operation: Operation },
  known: KnownIds,
): Arbitrary<ApiRequest> {
  const values = new JsonValues(document.components.schemas);
  const { method, path, operation } = place;
  const of = (where: Parameter['in']) => (operation.parameters ?? []).filter((one) => one.in === where);
  // What other operations use is not removed.
  const ids = method === 'delete' ? ['other'] : (known[path.split('/')[2] ?? ''] ?? []);
  return fc
    .record({
      path: fc.record(Object.fromEntries(of('path').map((one) => [one.name, partOfPath(values, one, ids)]))),
      query: partsOf(values, of('query'), 'query'),
      headers: partsOf(values, of('header'), 'header'),
      body: bodyOf(values, operation),
    })
    .map((parts) => ({
      method: method.toUpperCase(),
      path: toPath(path, parts.path as Record<string, string>, parts.query),
      headers: {
        ...toHeaders(parts.headers),
        ...(parts.body === undefined ? {} : { 'content-type': parts.body.type }),
      },
      body: parts.body?.text,
    }));
}

/** Returns parts of a path, encoded. */
function partOfPath(values: JsonValues, { schema }: Parameter, ids: readonly string[]): Arbitrary<string> {
  const texts = values.valid(schema).map((value) => encodeURIComponent(String(value)));
  const broken = fc.constantFrom(
    '%',
    '%zz',
    '%00',
    '%ff',
    '..',
    '%2e%2e%2f',
    '%2F',
    '~',
    'x'.repeat(2_000),
    '%F0%9F%98%80',
  );
  const real = ids.length === 0 ? texts : fc.constantFrom(...ids.map(encodeURIComponent));
  return fc.oneof({ weight: 6, arbitrary: real }, { weight: 2, arbitrary: texts }, { weight: 1, arbitrary: broken });
}

function partsOf(values: JsonValues, parameters: readonly Parameter[], where: string): Arbitrary<Parts> {
  const known = parameters.map(({ name, schema }): [string, Arbitrary<string>] => {
    // A wait would only cost time here.
    if (name === 'prefer') return [name, fc.constantFrom('wait=0', 'respond-async, wait=0', 'wait=0; x=y', 'wait=0,,')];
    const texts = fc.oneof({ weight: 10, arbitrary: values.valid(schema) }, { weight: 1, arbitrary: odd });
    return [name, texts.map(toText)];
  });
  const always = known.filter(([name]) => name === 'prefer').map(([name]) => name);
  const optional = fc.record(Object.fromEntries(known), { requiredKeys: always }) as Arbitrary<Parts>;
  if (where === 'header') return optional;
  return fc.oneof(
    { weight: 8, arbitrary: optional },
    { weight: 1, arbitrary: optional.map((parts) => ({ ...parts, unknown: '1' })) },
  );
}

function bodyOf(values: JsonValues, { requestBody }: Operation): Arbitrary<{ type: string; text: string } | undefined> {
  if (requestBody === undefined) return fc.constant(undefined);
  const [type = '', { schema } = {}] = Object.entries(requestBody.content)[0] ?? [];
  const bytes = fc.string({ maxLength: 200 }).map((text) => ({ type: type === '' ? 'text/plain' : type, text }));
  if (schema === undefined || type !== 'application/json') return bytes;
  const json = (value: unknown) => ({ type, text: JSON.stringify(value) ?? '' });
  const text = fc.constantFrom(
    '',
    '{',
    '[1,',
    'null',
    '"x"',
    '{"a":1e999}',
    '{"__proto__":{"x":1}}',
    `${'['.repeat(2_000)}`,
  );
  return fc.oneof(
    { weight: 6, arbitrary: values.valid(schema).map(json) },
    { weight: 4, arbitrary: values.broken(schema).map(json) },
    { weight: 1, arbitrary: text.map((given) => ({ type, text: given })) },
    { weight: 1, arbitrary: values.valid(schema).map((value) => ({ ...json(value), type: 'text/html' })) },
    ...(requestBody.required ? [] : [{ weight: 1, arbitrary: fc.constant(undefined) }]),
  );
}

function toPath(path: string, parts: Record<string, string>, query: Parts): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => parts[name] ?? '');
  const pairs = Object.entries(query).map(([name, value = '']) => `${name}=${encodeText(value)}`);
  return pairs.length === 0 ? filled : `${filled}?${pairs.join('&')}`;
}

const toText = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
const encodeText = (text: string) => encodeURIComponent(text.toWellFormed());
/** Returns the headers with what a header can hold. */
const toHeaders = (parts: Parts) =>
  Object.fromEntries(
    Object.entries(parts).map(([name, value = '']) => [name, value.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 1_000)]),
  );
