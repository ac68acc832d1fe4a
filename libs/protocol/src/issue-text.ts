import type { z } from 'zod';

/**
 * Returns the text of an issue whose schema has none: what the value must be, never the value. Without it zod's own
 * texts would reach callers. Every parse whose issues somebody reads passes it, as `{ error: toIssueText }`.
 */
export function toIssueText(issue: z.core.$ZodRawIssue): string {
  const demand = toDemand(issue);
  return issue.input === undefined ? `is missing; it ${demand}` : demand;
}

function toDemand(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return TYPES[issue.expected] ?? `must be of type ${issue.expected}`;
    case 'invalid_value':
      return `must be ${alternatives(issue.values.map(quote))}`;
    case 'too_small':
      return ofSize(issue.origin, issue.minimum, issue.exact ? EXACTLY : issue.inclusive ? AT_LEAST : MORE_THAN);
    case 'too_big':
      return ofSize(issue.origin, issue.maximum, issue.exact ? EXACTLY : issue.inclusive ? AT_MOST : LESS_THAN);
    case 'invalid_format':
      return ofFormat(issue);
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`;
    case 'unrecognized_keys':
      return 'must have no unknown fields';
    case 'invalid_union':
      return ofForms(issue);
    case 'invalid_key':
      return `has a key that ${firstOf(issue.issues)}`;
    case 'invalid_element':
      return `has an entry that ${firstOf(issue.issues)}`;
    default:
      return 'is not valid';
  }
}

const TYPES: Partial<Record<string, string>> = {
  string: 'must be a string',
  number: 'must be a number',
  int: 'must be a whole number',
  bigint: 'must be a whole number',
  boolean: 'must be true or false',
  null: 'must be null',
  array: 'must be a list',
  tuple: 'must be a list',
  set: 'must be a set',
  object: 'must be an object',
  record: 'must be an object',
  map: 'must be a map',
  date: 'must be a date',
  nonoptional: 'must be given',
  undefined: 'must not be given',
  never: 'must not be given',
};

const EXACTLY = 'exactly ';
const AT_LEAST = 'at least ';
const AT_MOST = 'at most ';
const MORE_THAN = 'more than ';
const LESS_THAN = 'less than ';

const UNITS: Partial<Record<string, string>> = {
  string: 'characters',
  array: 'entries',
  set: 'entries',
  map: 'entries',
  object: 'entries',
  file: 'bytes',
};

function ofSize(origin: string, limit: number | bigint, bound: string): string {
  const unit = UNITS[origin];
  if (unit === undefined) return `must be ${bound}${limit}`;
  if (bound === AT_LEAST && Number(limit) === 1) return 'must not be empty';
  return `must have ${bound}${limit} ${unit}`;
}

const FORMATS: Partial<Record<string, string>> = {
  url: 'a URL',
  email: 'an e-mail address',
  ulid: 'a ULID',
  uuid: 'a UUID',
  datetime: 'a date and time as of ISO 8601',
  base64: 'base64',
  json_string: 'JSON',
};

function ofFormat(issue: Pick<z.core.$ZodIssueInvalidStringFormat, 'format' | 'pattern'>): string {
  const given = issue as Partial<Record<'prefix' | 'suffix' | 'includes', string>>;
  switch (issue.format) {
    case 'regex':
      return `must match ${issue.pattern}`;
    case 'starts_with':
      return `must start with ${quote(given.prefix)}`;
    case 'ends_with':
      return `must end with ${quote(given.suffix)}`;
    case 'includes':
      return `must contain ${quote(given.includes)}`;
    default:
      return `must be ${FORMATS[issue.format] ?? `of the format ${issue.format}`}`;
  }
}

/** Returns what a value must be to have one of several forms, if each form says so in a few words. */
function ofForms({ errors, options }: Partial<Pick<z.core.$ZodIssueInvalidUnion, 'errors'>> & { options?: unknown[] }) {
  if (options !== undefined) return `must be ${alternatives(options.map(quote))}`;
  const forms = errors?.map(([first, ...others]) => {
    if (first === undefined || others.length > 0 || first.path.length > 0) return undefined;
    return /^(?:is missing; it )?must be (.+)$/s.exec(first.message)?.[1];
  });
  const isShort = (all: (string | undefined)[]): all is string[] => all.length > 0 && !all.includes(undefined);
  return forms !== undefined && isShort(forms)
    ? `must be ${alternatives(forms)}`
    : 'must have exactly one of the forms that are allowed';
}

const firstOf = ([first]: z.core.$ZodIssue[]) => first?.message ?? 'is not valid';

const quote = (value: unknown) => (typeof value === 'string' ? `'${value}'` : String(value));

function alternatives(all: string[]): string {
  const distinct = [...new Set(all)];
  const last = distinct.pop();
  return distinct.length === 0 ? `${last}` : `${distinct.join(', ')} or ${last}`;
}
