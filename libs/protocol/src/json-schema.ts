import { z } from 'zod';

/** The text of an option, as its schema has it in `meta`. Reference, docstrings and `--help` are written from it. */
export interface OptionText {
  description?: string | undefined;
  /** Default of an option whose schema has none, in words or as a value. */
  otherwise?: string | number | undefined;
  /** Limits of the value, in words. */
  limit?: string | undefined;
  /** Short text of the flag that sets the option. */
  flag?: string | undefined;
  /** Names, each of which is accepted instead of an object. */
  names?: readonly string[] | undefined;
}

/**
 * Returns the JSON Schema (2020-12) of the values that a schema accepts (`input`) or returns (`output`). Each schema
 * with an id is one definition. Descriptions contain defaults and limits that are given in words.
 */
export function toJsonSchema(schema: z.ZodType, io: 'input' | 'output'): z.core.JSONSchema.BaseSchema {
  return z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override: ({ jsonSchema }) => describeInWords(jsonSchema),
  });
}

function describeInWords(schema: z.core.JSONSchema.BaseSchema & OptionText): void {
  const { description, otherwise, limit, names, oneOf = [] } = schema;
  const parts = [description, otherwise && `Default: ${otherwise}.`, limit && `Limit: ${limit}.`];
  if (description !== undefined) schema.description = parts.filter(Boolean).join(' ');
  if (names !== undefined) schema.oneOf = [{ type: 'string', enum: [...names] }, ...oneOf];
  for (const key of ['otherwise', 'limit', 'flag', 'names'] as const) delete schema[key];
}
