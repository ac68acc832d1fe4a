const LONGEST = 4_096;

/** Returns `<Type>: <message>` for a thrown value of any type. */
export function describeThrown(thrown: unknown): string {
  try {
    return describe(thrown).slice(0, LONGEST);
  } catch {
    return 'something that cannot be read';
  }
}

function describe(thrown: unknown): string {
  if (thrown instanceof Error) return `${thrown.name || 'Error'}: ${thrown.message}`;
  if (thrown === null || thrown === undefined) return String(thrown);
  if (typeof thrown !== 'object') return `${typeof thrown}: ${String(thrown)}`;
  const { inspect } = process.getBuiltinModule('node:util');
  return `${thrown.constructor?.name ?? 'Object'}: ${inspect(thrown, { depth: 1, breakLength: Number.POSITIVE_INFINITY })}`;
}
