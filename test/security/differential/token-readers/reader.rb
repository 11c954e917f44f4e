# Reads requests from stdin, one line of JSON each; prints the refresh tokens that Ruby's libraries find in each.
require 'cgi'
require 'json'
require 'rack'
require 'stringio'
require 'uri'
require 'zlib'
$stdout.sync = true

def fold(name) = name.to_s.gsub(/[_\-]/, '').downcase

def walk(value, out)
  case value
  when Hash
    exchanges = [nil, 'refresh_token'].include?(value['grant_type'])
    value.each do |name, inner|
      out << inner.to_s if exchanges && fold(name) == 'refreshtoken' && (inner.is_a?(String) || inner.is_a?(Integer))
      walk(inner, out)
    end
  when Array then value.each { |inner| walk(inner, out) }
  end
end

def from_params(params, out)
  grant = params['grant_type']
  grant = grant.last if grant.is_a?(Array)
  return if grant && grant != 'refresh_token'
  walk(params, out)
  params.each { |name, values| out.concat(values.map(&:to_s)) if values.is_a?(Array) && fold(name) == 'refreshtoken' }
end

def attempt
  yield
rescue StandardError, SystemStackError
  nil
end

def bodies(request)
  body = request['body'].unpack1('m')
  all = [body]
  attempt { all << Zlib.gunzip(body) }
  attempt { all << Zlib.inflate(body) }
  all
end

def read(request)
  out = []
  query = request['query']
  bodies(request).each do |octets|
    text = octets.dup.force_encoding('UTF-8')
    attempt { walk(JSON.parse(text), out) }
    attempt { walk(JSON.parse(octets.dup.force_encoding('BINARY')), out) }
    [text, "#{text}&#{query}"].each do |form|
      attempt { from_params(CGI.parse(form), out) }
      attempt { from_params(URI.decode_www_form(form).group_by(&:first).transform_values { |all| all.map(&:last) }, out) }
      attempt { from_params(Rack::Utils.parse_nested_query(form), out) }
    end
    env = { 'REQUEST_METHOD' => 'POST', 'QUERY_STRING' => query, 'CONTENT_TYPE' => request['contentType'],
            'CONTENT_LENGTH' => octets.bytesize.to_s, 'rack.input' => StringIO.new(octets) }
    attempt { from_params(Rack::Request.new(env).params, out) }
  end
  attempt { from_params(CGI.parse(query), out) }
  out
end

$stdin.each_line do |line|
  puts JSON.generate(read(JSON.parse(line)).map { |text| text.dup.force_encoding('UTF-8').scrub('?') })
end
