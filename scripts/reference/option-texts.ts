import { z } from 'zod';
import { batchOptionsSchema } from '../../libs/client/src/batch/batch-options.ts';
import { taskSchema } from '../../libs/client/src/batch/task.ts';
import * as client from '../../libs/client/src/index.ts';
import * as protocol from '../../libs/protocol/src/index.ts';
import { describeDefault } from './describe-default.ts';

/** Texts of a type, from the schema with its name as id. */
export interface TypeTexts {
  text: string | undefined;
  fields: Map<string, FieldTexts>;
}

export interface FieldTexts {
  text: string;
  default: string | undefined;
  limit: string | undefined;
  /** Text of the flag of the command line that sets the option. */
  flag: string | undefined;
}

/** Returns the texts of every type whose schema has an id, by the name of the type. */
export function readOptionTexts(): Map<string, TypeTexts> {
  const texts = new Map<string, TypeTexts>();
  const values = [...Object.values(protocol), ...Object.values(client), batchOptionsSchema, taskSchema];
  for (const schema of schemasIn(values)) {
    const { id, description } = schema.meta() ?? {};
    if (id === undefined) continue;
    const fields = Object.entries(shapeOf(schema)).flatMap(([name, field]) => {
      const text = readField(field);
      return text === undefined ? [] : [[name, text] as const];
    });
    texts.set(id, { text: description, fields: new Map(fields) });
  }
  return texts;
}

/** Returns the schemas among values and everything that they consist of, each once. */
function schemasIn(values: readonly unknown[]): Set<z.ZodType> {
  const found = new Set<z.ZodType>();
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    if (value instanceof z.ZodType) {
      if (found.has(value)) return;
      found.add(value);
      const { def } = value._zod;
      // The default of a schema can be a getter that needs the whole schema.
      for (const [key, part] of Object.entries(def)) if (key !== 'defaultValue') visit(part);
    } else if (Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype)
      Object.values(value).forEach(visit);
  };
  visit(values);
  return found;
}

/** Returns the fields of the object that a schema accepts. */
function shapeOf(schema: z.ZodType): Record<string, z.ZodType> {
  if (schema instanceof z.ZodObject) return schema.shape;
  return schema instanceof z.ZodPipe ? shapeOf(schema.in as z.ZodType) : {};
}

function readField(field: z.ZodType): FieldTexts | undefined {
  const { description, otherwise, limit, flag } = (field.meta() ?? {}) as protocol.OptionText;
  if (description === undefined) return undefined;
  return { text: description, default: toDefault(field, otherwise), limit, flag };
}

function toDefault(field: z.ZodType, otherwise: string | number | undefined): string | undefined {
  if (typeof otherwise === 'string') return otherwise;
  if (otherwise !== undefined) return describeDefault(otherwise);
  if (!(field instanceof z.ZodDefault)) return undefined;
  const { defaultValue } = field.def;
  // The fields of a default that is an object have texts of their own.
  const hasFields = typeof defaultValue === 'object' && defaultValue !== null && Object.keys(defaultValue).length > 0;
  return hasFields ? undefined : describeDefault(defaultValue);
}
