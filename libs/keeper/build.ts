export async function buildKeeper(): Promise<string> {
  throw new Error('The keeper has no source yet.');
}
