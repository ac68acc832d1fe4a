type Json = Record<string, unknown>;

/** Schema of JSON, as far as an example needs it. */
interface Schema {
  $ref?: string;
  type?: string;
  const?: unknown;
  default?: unknown;
  enum?: unknown[];
  examples?: unknown[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  format?: string;
  minimum?: number;
}

/** Values of fields of these names, wherever an example has them. */
const OF_FIELDS: Json = {
  sessionId: 'agent-42',
  commandId: 'agent-42.01K9ZQ4T8C5W3N7R2M6P1V0XYD',
  hostId: 'host-1',
  tenant: 'default',
  script: 'echo hi',
  stdout: 'hi\n',
  output: 'hi\n',
  stderr: '',
  name: 'nightly',
  image: 'node:24',
  path: '/workspace/report.txt',
  idempotencyKey: 'order-7',
};
const TIME = '2026-01-31T12:00:00.000Z';
const MOST_LEVELS = 6;

/** Returns an example of a JSON schema, with its required fields. */
export function exampleOf(schema: Schema, components: Json, field = '', level = 0): unknown {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1);
    return exampleOf((components[name] ?? {}) as Schema, components, field, level);
  }
  const [given] = [schema.const, schema.examples?.[0], schema.default, schema.enum?.[0]].filter(
    (one) => one !== undefined,
  );
  if (given !== undefined) return given;
  const [form] = schema.oneOf ?? schema.anyOf ?? [];
  if (form !== undefined) return exampleOf(form, components, field, level);
  if (schema.type === 'object') return level > MOST_LEVELS ? {} : exampleOfObject(schema, components, level);
  if (schema.type === 'array') {
    if (schema.items === undefined || level > MOST_LEVELS) return [];
    return [exampleOf(schema.items, components, field, level + 1)];
  }
  return exampleOfValue(schema, field);
}

function exampleOfObject({ properties = {}, required = [] }: Schema, components: Json, level: number): Json {
  const fields = Object.entries(properties).filter(([name]) => required.includes(name));
  return Object.fromEntries(fields.map(([name, own]) => [name, exampleOf(own, components, name, level + 1)]));
}

function exampleOfValue({ type, format, minimum }: Schema, field: string): unknown {
  switch (type) {
    case 'string':
      return OF_FIELDS[field] ?? (format === 'date-time' || field.endsWith('At') ? TIME : field || 'text');
    case 'integer':
    case 'number':
      return Math.max(minimum ?? 0, 0);
    case 'boolean':
      return false;
    default:
      return null;
  }
}
