/** A sample of an exposition, such as `http_server_requests_total{route="*"} 3`. */
export interface MetricSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface MetricFamily {
  readonly type: string;
  readonly samples: readonly MetricSample[];
}

/** What may follow the name of a family in the names of its samples. */
const suffixes: Readonly<Record<string, readonly string[]>> = {
  counter: ['_total', '_created'],
  gauge: [''],
  histogram: ['_bucket', '_count', '_sum', '_created'],
  summary: ['', '_count', '_sum', '_created'],
  info: ['_info'],
  unknown: [''],
};

/** Parses OpenMetrics text as strictly as its specification is written; throws on the first line that it forbids. */
export function parseOpenMetrics(text: string): ReadonlyMap<string, MetricFamily> {
  if (!text.endsWith('# EOF\n')) throw new Error('no "# EOF" at the end');
  const families = new Map<string, { type: string; samples: MetricSample[] }>();
  const seen = new Set<string>();
  let current = '';
  for (const line of text.slice(0, -'# EOF\n'.length).split('\n').slice(0, -1)) {
    const meta = /^# (TYPE|HELP|UNIT) ([a-zA-Z_:][\w:]*) (.*)$/.exec(line);
    if (meta !== null) {
      const [, kind, name = '', rest = ''] = meta;
      if (name !== current && families.has(name)) throw new Error(`the family ${name} comes twice`);
      current = name;
      const family = families.get(name) ?? { type: 'unknown', samples: [] };
      if (kind === 'TYPE') family.type = rest;
      if (!Object.hasOwn(suffixes, family.type)) throw new Error(`unknown type: ${line}`);
      families.set(name, family);
      continue;
    }
    const sample = parseSample(line);
    const family = families.get(current);
    const names = (suffixes[family?.type ?? ''] ?? []).map((suffix) => current + suffix);
    if (family === undefined || !names.includes(sample.name)) throw new Error(`not of ${current}: ${line}`);
    const key = line.slice(0, line.lastIndexOf(' '));
    if (seen.has(key)) throw new Error(`twice: ${key}`);
    seen.add(key);
    family.samples.push(sample);
  }
  for (const [name, { type, samples }] of families) if (type === 'histogram') checkHistogram(name, samples);
  return families;
}

function parseSample(line: string): MetricSample {
  const [, name, block, number] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
  if (name === undefined || number === undefined) throw new Error(`not a sample: ${line}`);
  const labels: Record<string, string> = {};
  let rest = block ?? '';
  while (rest !== '') {
    const [whole, label, value] = /^([a-zA-Z_]\w*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/.exec(rest) ?? [];
    if (whole === undefined || label === undefined || value === undefined)
      throw new Error(`bad labels: ${line}`);
    labels[label] = value;
    rest = rest.slice(whole.length);
  }
  return { name, labels, value: parseNumber(number, line) };
}

/** The words for what is no real number are taken in any case, as the specification's grammar has them. */
function parseNumber(text: string, line: string): number {
  if (/^nan$/i.test(text)) return Number.NaN;
  if (/^[+-]?inf(?:inity)?$/i.test(text)) return text.startsWith('-') ? -Infinity : Infinity;
  if (!/^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(text)) throw new Error(`not a number: ${line}`);
  return Number(text);
}

/** Buckets never fall, and the last one counts everything. */
function checkHistogram(name: string, samples: readonly MetricSample[]): void {
  const groups = Map.groupBy(samples, ({ labels: { le: _, ...others } }) => JSON.stringify(others));
  for (const [labels, group] of groups) {
    const buckets = group.filter((sample) => sample.name === `${name}_bucket`);
    const count = group.find((sample) => sample.name === `${name}_count`)?.value;
    const isRising = buckets.every(({ value }, i) => i === 0 || value >= (buckets[i - 1]?.value ?? 0));
    if (!isRising || buckets.at(-1)?.labels.le !== '+Inf' || buckets.at(-1)?.value !== count) {
      throw new Error(`the buckets of ${name}${labels} do not add up`);
    }
  }
}
