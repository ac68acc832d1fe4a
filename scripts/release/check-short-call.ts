/** A file of the bundle. */
interface BundledFile {
  fileName: string;
  code: string;
  /** Files that Node loads before this one. */
  imports: readonly string[];
  /** Module for which the file exists: the entry point, or the target of an `import()`. */
  facadeModuleId: string | null;
}

/** Modules that `exec` loads, one after the other. */
const loadedByExec = ['producer/dist/main.js', 'producer/dist/start.js', 'cli/exec.js'];
/** Most bytes of code that `exec` may load. Node reads and hashes all of them. */
const MOST_BYTES = 900_000;
/** Most bytes of a file besides the common one, such as a helper of the bundler. */
const SMALL = 4_000;

/**
 * Throws when a short call, for which `exec` stands, loads code of another verb, or too much of its own. One constant
 * in a file with the code of a server costs 70 ms of processor time.
 */
export function checkShortCall(files: readonly BundledFile[]): void {
  const loaded = new Set<BundledFile>();
  const load = (file: BundledFile) => {
    if (loaded.has(file)) return;
    loaded.add(file);
    for (const other of files) if (file.imports.includes(other.fileName)) load(other);
  };
  for (const name of loadedByExec) {
    const file = files.find(({ facadeModuleId }) => facadeModuleId?.endsWith(`/${name}`));
    if (file === undefined) throw new Error(`The bundle has no file for ${name}.`);
    load(file);
  }
  const sizes = [...loaded].map(({ fileName, code }) => `${fileName} ${code.length}`).join(', ');
  const large = [...loaded].filter(({ fileName, code }) => fileName !== 'common.js' && code.length > SMALL);
  if (large.length > 0)
    throw new Error(`exec loads ${large.map(({ fileName }) => fileName).join(', ')} besides common.js: ${sizes}.`);
  const bytes = [...loaded].reduce((sum, { code }) => sum + code.length, 0);
  if (bytes > MOST_BYTES) throw new Error(`exec loads ${bytes} bytes, more than ${MOST_BYTES}: ${sizes}.`);
}
