/** What a reader has received so far. */
export interface Reading {
  text: string;
  lastEventId: string | undefined;
  events: number;
  /** The data of the `end` event. */
  end: { outcome: string; exitCode: number | null } | undefined;
}

/**
 * Reads like the EventSource of a browser, which sends the id of the last event when it comes
 * back. Leaves after `mostEvents` or at the end, and returns the state from which it can go on.
 */
export async function read(url: string, before?: Reading, mostEvents = Infinity): Promise<Reading> {
  const reading: Reading = { ...(before ?? { text: '', lastEventId: undefined, events: 0, end: undefined }) };
  const leaveAt = reading.events + mostEvents;
  const headers = reading.lastEventId === undefined ? {} : { 'last-event-id': reading.lastEventId };
  const response = await fetch(url, { headers });
  if (!response.ok || response.body === null) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  let rest = '';
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + piece).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      take(block, reading);
      // Leaving the loop closes the connection.
      if (reading.end !== undefined || reading.events >= leaveAt) return reading;
    }
  }
  return reading;
}

function take(block: string, reading: Reading): void {
  const fields = new Map(block.split('\n').map((line) => line.split(/: (.*)/s) as [string, string]));
  const data = JSON.parse(fields.get('data') ?? 'null');
  switch (fields.get('event')) {
    case 'output':
      reading.text += data.text;
      reading.lastEventId = fields.get('id');
      reading.events += 1;
      return;
    case 'end':
      reading.end = data;
      return;
    default:
      throw new Error(`The back end reported: ${block}`);
  }
}
