# Reads requests from stdin, one line of JSON each; prints the refresh tokens that CGI.pm and Plack find in each.
use strict;
use warnings;
no warnings 'all';
use CGI;
use Encode ();
use JSON::PP ();
use MIME::Base64 ();
use Plack::Request;

$| = 1;
my $json = JSON::PP->new->ascii->allow_nonref;

sub fold { my $name = lc(shift // ''); $name =~ s/[_-]//g; return $name }

# Pairs of name and value, as one parser of forms returns them.
sub from_pairs {
    my ($pairs, $out) = @_;
    my ($grant) = map { $_->[1] } grep { $_->[0] eq 'grant_type' } @$pairs;
    return if defined $grant && $grant ne 'refresh_token';
    push @$out, map { $_->[1] } grep { fold($_->[0]) eq 'refreshtoken' } @$pairs;
}

sub walk {
    my ($value, $out) = @_;
    if (ref $value eq 'HASH') {
        my $grant = $value->{grant_type};
        for my $name (keys %$value) {
            my $inner = $value->{$name};
            push @$out, "$inner"
                if !ref $inner && defined $inner && fold($name) eq 'refreshtoken' && ($grant // 'refresh_token') eq 'refresh_token';
            walk($inner, $out);
        }
    } elsif (ref $value eq 'ARRAY') { walk($_, $out) for @$value }
}

sub with_cgi {
    my ($request, $body, $out) = @_;
    local %ENV = (%ENV, REQUEST_METHOD => $request->{method}, QUERY_STRING => $request->{query},
        CONTENT_TYPE => $request->{contentType}, CONTENT_LENGTH => length $body);
    open my $handle, '<', \$body;
    local *STDIN = $handle;
    CGI::initialize_globals();
    my $cgi = CGI->new;
    for my $source ([map { my $name = $_; map { [$name, $_] } $cgi->multi_param($name) } $cgi->multi_param],
        [map { my $name = $_; map { [$name, $_] } $cgi->url_param($name) } $cgi->url_param]) {
        from_pairs($source, $out);
    }
    my $text = $cgi->param('POSTDATA') // $cgi->param('PUTDATA');
    walk($json->decode($text), $out) if defined $text && $text =~ /^\s*[{\[]/;
}

sub with_plack {
    my ($request, $body, $out) = @_;
    open my $handle, '<', \$body;
    my $env = { REQUEST_METHOD => $request->{method}, QUERY_STRING => $request->{query}, PATH_INFO => '/',
        CONTENT_TYPE => $request->{contentType}, CONTENT_LENGTH => length $body, SERVER_NAME => 'a', SERVER_PORT => 80,
        'psgi.input' => $handle, 'psgix.input.buffered' => 1, 'psgi.url_scheme' => 'http' };
    my $plack = Plack::Request->new($env);
    for my $all ($plack->parameters, $plack->body_parameters, $plack->query_parameters) {
        my @pairs;
        $all->each(sub { push @pairs, [@_] });
        from_pairs(\@pairs, $out);
    }
    walk($json->decode($plack->content), $out);
}

open my $lines, '<&', \*STDIN;
while (my $line = <$lines>) {
    my $request = $json->decode($line);
    my $body = MIME::Base64::decode_base64($request->{body});
    my @out;
    for my $read (\&with_cgi, \&with_plack) {
        my $octets = $body;
        eval { $read->($request, $octets, \@out) };
    }
    eval { walk($json->decode($body), \@out) };
    print $json->encode([map { my $text = "$_"; utf8::is_utf8($text) ? $text : Encode::decode('UTF-8', $text) } @out]), "\n";
}
