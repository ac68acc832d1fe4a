/**
 * Returns an object that behaves as the schema that `make` returns. It calls `make` at its first use: the libraries
 * define over a hundred schemas, of which a short call of the command line needs some twenty.
 */
export function lazySchema<Schema extends object>(make: () => Schema): Schema {
  let made: Schema | undefined;
  const schema = (): Schema => {
    made ??= make();
    return made;
  };
  return new Proxy({} as Schema, {
    get: (_none, name) => Reflect.get(schema(), name),
    has: (_none, name) => Reflect.has(schema(), name),
    getPrototypeOf: () => Reflect.getPrototypeOf(schema()),
  });
}
